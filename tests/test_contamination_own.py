"""A user's own contamination law: found, tried, guarded, and part of a run's identity."""

from __future__ import annotations

import pickle
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import cads_env
from cads_env.bound import bound_check
from cads_env.campaign import open_screen, play
from cads_env.contamination import RatedLaw, code_sha256, make_law
from cads_env.errors import ProtocolError, RunError
from cads_env.testing import tiny_protocol, tiny_registry

PAIR = tiny_registry(60, 12)
SPIKY = """
import numpy as np

class Spiky:
    def __init__(self, epsilon, size=3.0):
        self.epsilon, self.size = epsilon, size

    def rates(self, batch):
        return np.full(batch.clean.size, self.epsilon)

    def contaminate(self, batch):
        at = batch.coin(self.epsilon)
        batch.clean[at] += self.size
        return batch.clean
"""


def write(folder: Path, code: str, name: str = "laws.py") -> str:
    """A file with a law, and the law's path up to the class."""
    path = folder / name
    path.write_text(dedent(code))
    return str(path)


def broken(body: str, *, extra: str = "") -> str:
    return (
        "import numpy as np\n\n"
        "class Spiky:\n"
        "    def __init__(self, epsilon):\n"
        "        self.calls = 0\n"
        f"    def contaminate(self, batch):\n        {body}\n"
        f"{extra}"
    )


def test_a_law_from_a_file_touches_the_reads_whose_coin_falls(tmp_path: Path) -> None:
    path = write(tmp_path, SPIKY)
    own = tiny_protocol(law=f"{path}:Spiky", law_options={"size": 3}, epsilon=0.2)
    ours = tiny_protocol(law="uniform", law_options={"low": 3, "high": 3}, epsilon=0.2)
    records = [play(open_screen([PAIR], [4], p), [None])[0] for p in (own, ours)]
    assert records[0].values.tolist() == records[1].values.tolist()


def test_a_law_is_found_by_its_module_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, SPIKY, "some_laws_of_mine.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    law = make_law("some_laws_of_mine:Spiky", 0.1, {})
    assert isinstance(law, RatedLaw)
    assert code_sha256("some_laws_of_mine:Spiky") == code_sha256(
        f"{tmp_path}/some_laws_of_mine.py:Spiky"
    )


def test_the_bound_of_a_users_law_is_computed(tmp_path: Path) -> None:
    protocol = tiny_protocol(law=f"{write(tmp_path, SPIKY)}:Spiky", law_options={}, epsilon=0.2)
    found = bound_check(PAIR, protocol, range(3))
    assert found.largest_conditional_rate == 0.2
    assert not found.holds
    assert bound_check(PAIR, protocol, range(3), epsilon_bar=0.2).holds
    silent = write(tmp_path, broken("return batch.clean"))
    protocol = tiny_protocol(law=f"{silent}:Spiky", law_options={})
    with pytest.raises(ProtocolError, match=r"no rates\(batch\)"):
        bound_check(PAIR, protocol, range(3))


def test_our_laws_have_no_code_of_their_own() -> None:
    assert code_sha256("uniform") is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (broken("return batch.clean[:-1]"), r"gave shape \(11,\); expected shape \(12,\)"),
        (broken("return batch.clean * np.nan"), "gave nan for read 0 of round 1"),
        (broken("return 'reads'"), "gave dtype <U5"),
        (broken("return None"), "gave dtype object"),
        (broken("return 1 / 0"), "raised ZeroDivisionError: division by zero"),
        (broken("batch.signal[:] = 0; return batch.clean"), "raised ValueError.*read-only"),
        (broken("return batch.clean + np.arange(batch.clean.size)"), "one by one"),
        (broken("self.calls += 1; return batch.clean + self.calls"), "one by one"),
        (
            broken("return batch.clean", extra="    def rates(self, batch):\n        return 2\n"),
            r"rates\(batch\) gave shape \(\)",
        ),
        (
            broken(
                "return batch.clean",
                extra="    def rates(self, batch):\n        return batch.clean * 0 - 1\n",
            ),
            r"rates\(batch\) gave -1.0 for read 0.*probabilities in \[0, 1\]",
        ),
        ("class Spiky:\n    pass\n", "Spiky is no class with contaminate"),
        ("Spiky = 3\n", "Spiky is no class with contaminate"),
        (SPIKY.replace("Spiky", "Spikey"), "Spiky does not exist. Did you mean 'Spikey'"),
        ("import no_such_module\n", "failed to load: ModuleNotFoundError"),
        ("def (:\n", "failed to load: SyntaxError"),
        ("raise SystemExit\n", "failed to load: SystemExit"),
        (
            "class Spiky:\n    def contaminate(self, batch):\n        return batch.clean\n",
            r"cannot be built with epsilon = 0.1 and {}: TypeError",
        ),
    ],
)
def test_a_broken_law_is_named_before_the_first_read(
    tmp_path: Path, code: str, message: str
) -> None:
    path = write(tmp_path, code)
    with pytest.raises(ProtocolError, match=message) as caught:
        open_screen([PAIR], [0], tiny_protocol(law=f"{path}:Spiky", law_options={}, epsilon=0.1))
    assert "laws.py:Spiky" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}/none.py:Spiky", "cannot be read: No such file"),
        ("{}/laws.py", "names no class; expected"),
        ("{}/laws.py:", "names no class; expected"),
        (":Spiky", "names no class; expected"),
        ("no_such_package.laws:Spiky", "cannot be imported: ModuleNotFoundError"),
        ("math:pi", "pi is no class with contaminate"),
    ],
)
def test_a_law_that_is_nowhere_is_named(tmp_path: Path, name: str, message: str) -> None:
    write(tmp_path, SPIKY)
    with pytest.raises(ProtocolError, match=message):
        make_law(name.format(tmp_path), 0.1, {})


def test_a_law_that_breaks_later_is_named_with_its_round(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        broken("return batch.clean if batch.round < 2 else batch.clean * np.inf"),
    )
    screen = open_screen([PAIR], [0], tiny_protocol(law=f"{path}:Spiky", law_options={}))
    screen.step([None])
    screen.step([None])
    with pytest.raises(ProtocolError, match=r"laws.py:Spiky.*inf for read 0 of round 2"):
        screen.step([None])


def test_a_changed_file_is_another_law_and_another_run(tmp_path: Path) -> None:
    path = write(tmp_path, SPIKY)
    protocol = tiny_protocol(law=f"{path}:Spiky", law_options={}, epsilon=0.5)
    settings: dict[str, Any] = {"registry": PAIR, "protocol": protocol, "out": tmp_path / "run"}
    first = cads_env.evaluate("random", seeds=[0], **settings)
    digest = first.manifest["config"]["law_code_sha256"]
    assert digest == code_sha256(f"{path}:Spiky")
    write(tmp_path, SPIKY.replace("+= self.size", "-= self.size"))
    with pytest.raises(RunError, match=r"differs in: law_code_sha256"):
        cads_env.evaluate("random", seeds=[0], **settings)
    second = cads_env.evaluate("random", seeds=[0], **(settings | {"out": tmp_path / "other"}))
    sums = [
        float(np.sum([r.values.sum() for _, r in cads_env.run.read_records(tmp_path / folder)]))
        for folder in ("run", "other")
    ]
    assert sums[0] != sums[1]
    # The twin under the first law must not be taken for that under the second.
    alone = cads_env.evaluate("nothing", seeds=[0], **(settings | {"out": tmp_path / "third"}))
    assert second.campaigns["twin_true"].tolist() == alone.campaigns["twin_true"].tolist()
    assert alone.net.mean == 0.0


def test_runs_of_our_laws_name_no_code() -> None:
    result = cads_env.evaluate("random", registry=PAIR, protocol=tiny_protocol(), seeds=[0])
    assert "law_code_sha256" not in result.manifest["config"]


def test_a_users_law_reads_the_same_in_another_process(tmp_path: Path) -> None:
    path = write(tmp_path, SPIKY)
    protocol = tiny_protocol(law=f"{path}:Spiky", law_options={"size": 2}, epsilon=0.5)
    frames = [
        cads_env.evaluate("random", registry=PAIR, protocol=protocol, seeds=range(3), jobs=jobs)
        for jobs in (1, 2)
    ]
    assert frames[0].campaigns.equals(frames[1].campaigns)
    screen = open_screen([PAIR], [0], protocol)
    screen.step([None])
    copy = pickle.loads(pickle.dumps(screen))
    for played in (screen, copy):
        played.step([None])
    assert screen.records()[0].sha256 == copy.records()[0].sha256
