"""What `import cads_env` loads, names and registers."""

from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import pytest

import cads_env


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_none_of_the_heavy_parts() -> None:
    loaded = run("import cads_env, sys; print(*sys.modules)").split()
    heavy = {"pandas", "scipy", "torch", "yaml", "typer", "rich", "cads_agents"}
    assert heavy.isdisjoint(loaded)
    ours = {name for name in loaded if name.startswith("cads_")}
    assert ours == {"cads_env"}


def test_importing_registers_the_ids_by_text() -> None:
    for name in ("CADSScreen-v0", "CADSScreenPublished-v0"):
        spec = gym.spec(name)
        assert (spec.entry_point, spec.vector_entry_point) == (
            "cads_env.envs:make_env",
            "cads_env.envs:make_vector_env",
        )


def test_importing_again_warns_of_nothing() -> None:
    run(
        "import cads_env, sys, importlib;"
        "importlib.reload(cads_env); del sys.modules['cads_env']; import cads_env"
    )


@pytest.mark.parametrize("module", ["envs", "wrappers", "run"])
def test_every_part_can_be_imported_first(module: str) -> None:
    run(f"import cads_env.{module}")


def test_making_an_environment_needs_no_frames() -> None:
    program = (
        "import gymnasium, cads_env, sys;"
        "gymnasium.make('CADSScreen-v0', registry='synthetic-depmap-6000/0').reset(seed=0);"
        "print('pandas' in sys.modules, 'torch' in sys.modules)"
    )
    assert run(program).split() == ["False", "False"]


def test_dir_lists_every_public_name_before_it_is_used() -> None:
    listed = run("import cads_env; print(*dir(cads_env))").split()
    assert set(cads_env.__all__) <= set(listed)
    assert {"certificate", "envs", "errors", "testing", "wrappers", "__version__"} <= set(listed)
    assert listed == sorted(listed)


@pytest.mark.parametrize("name", cads_env.__all__)
def test_every_public_name_is_what_its_home_defines(name: str) -> None:
    value = getattr(cads_env, name)
    assert value.__name__ == name
    assert value.__module__.startswith("cads_env.")
    assert getattr(cads_env, name) is value


def test_modules_are_reached_as_attributes() -> None:
    names = ["certificate", "envs", "errors", "testing", "wrappers"]
    uses = ", ".join(f"cads_env.{name}.__name__" for name in names)
    assert run(f"import cads_env; print({uses})").split() == [f"cads_env.{n}" for n in names]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'cads_env' has no attribute 'evaluat'"):
        cads_env.evaluat  # noqa: B018
    with pytest.raises(ImportError, match="evaluat"):
        from cads_env import evaluat  # noqa: F401
