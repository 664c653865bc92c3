"""Finding what builds an agent: by entry-point name, agent file, `module:Class` or Python file.

Loads other people's modules and says clearly when they do not load. Builds no agent and asks none.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from cads_env.errors import AgentError, suggest
from cads_env.run.agent_files import AgentFile, is_yaml, read_agent_file, shipped_agents
from cads_env.values import parse_value, plain_text

ENTRY_POINT_GROUP: Final = "cads_env.agents"

_module_numbers = itertools.count()


class Factory(NamedTuple):
    """What builds an agent, and how it was named.

    Attributes:
        name: What its arm is called unless somebody names it.
        source: Where it comes from, for the manifest.
        make: Class or function that returns a new proposer.
        options: Keyword arguments that came with the name.
        text: By which another process finds `make`.
    """

    name: str
    source: str
    make: Callable[..., Any]
    options: Mapping[str, Any]
    text: str


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    return {e.name: e for e in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)}


def agent_names() -> tuple[str, ...]:
    """Names of the installed agents, sorted."""
    return tuple(sorted(_entry_points()))


def find_factory(text: str) -> Factory:
    """What a text names.

    Args:
        text: An installed agent (`prior`, `replay-list:path=ranking.txt`), an agent file of the
            package (`qwen2.5-7b`) or of one's own (`mine.yaml`), both with or without options after
            a colon, `module:Class`, or a Python file (`my_agent.py`, `my_agent.py:MyAgent`).

    Raises:
        AgentError: It names no agent, or the agent's module does not load.
    """
    head, _, tail = text.partition(":")
    points = _entry_points()
    if head in points:
        make = _load_entry(points[head])
        return Factory(head, points[head].value, make, _options(tail, text), text)
    if is_yaml(head) or head in shipped_agents():
        found = factory_of(read_agent_file(head))
        return found._replace(options={**found.options, **_options(tail, text)})
    if head.endswith(".py") or text.endswith(".py"):
        path, _, name = text.partition(".py:") if ".py:" in text else (text[:-3], "", "")
        return _from_file(Path(path + ".py"), name, text)
    if tail:
        return _from_module(head, tail, text)
    msg = (
        f"Unknown agent {text!r}. {suggest(text, [*points, *shipped_agents()])} "
        "An agent of your own is given as module:Class, path/to/file.py or path/to/agent.yaml."
    )
    raise AgentError(msg)


def factory_of(file: AgentFile) -> Factory:
    """What an agent file, or a mapping of the same form, names.

    Raises:
        AgentError: Its agent is another agent file, or names no agent.
    """
    head = file.agent.partition(":")[0]
    if is_yaml(head) or (head in shipped_agents() and head not in _entry_points()):
        msg = (
            f"{file.where} names the agent file {file.agent!r} as its agent; expected an installed "
            f"agent ({', '.join(agent_names())}), module:Class or path/to/file.py."
        )
        raise AgentError(msg)
    found = find_factory(file.agent)
    options = {**found.options, **file.options}
    return found._replace(name=plain_text(file.arm or found.name), options=options)


def _options(tail: str, text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for entry in filter(None, tail.split(",")):
        key, equals, value = entry.partition("=")
        if not equals or not key.isidentifier():
            msg = f"Cannot read {entry!r} in {text!r}; expected name:key=value,key=value."
            raise AgentError(msg)
        if key in options:
            msg = f"{text!r} gives {key!r} more than once; expected it once."
            raise AgentError(msg)
        options[key] = parse_value(value)
    return options


def _load_entry(point: importlib.metadata.EntryPoint) -> Callable[..., Any]:
    try:
        factory: Callable[..., Any] = point.load()
    except (Exception, SystemExit) as error:
        msg = f"Agent {point.name!r} ({point.value}) cannot be imported: {error}"
        raise AgentError(msg) from error
    return factory


def _from_module(module_name: str, attribute: str, text: str) -> Factory:
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        msg = (
            f"Agent {text!r}: module {module_name!r} cannot be imported: "
            f"{type(error).__name__}: {error}. Installed agents: {', '.join(agent_names())}."
        )
        raise AgentError(msg) from error
    return Factory(attribute, text, _attribute(module, attribute, text), {}, text)


def _from_file(path: Path, name: str, text: str) -> Factory:
    try:
        exists = path.is_file()
    except (OSError, ValueError):
        exists = False
    if not exists:
        msg = f"Agent file {str(path)[:200]!r} does not exist; expected a Python file."
        raise AgentError(msg)
    # A name of its own for every load, so that two files of one name stay two modules.
    module_name = f"_cads_agent_{next(_module_numbers)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        msg = f"Agent file {str(path)!r} cannot be loaded as Python."
        raise AgentError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        msg = f"Agent file {str(path)!r} failed to load: {type(error).__name__}: {error}"
        raise AgentError(msg) from error
    name = name or _only_proposer(module, path)
    factory = _attribute(module, name, text)
    # Absolute: the other process may start elsewhere.
    return Factory(name, text, factory, {}, f"{path.absolute()}:{name}")


def _only_proposer(module: ModuleType, path: Path) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and _proposes(value)
    ]
    if len(names) != 1:
        found = ", ".join(names) or "none"
        msg = (
            f"Agent file {str(path)!r} must hold one class with a propose method; found: {found}. "
            f"Name one as {path}:ClassName."
        )
        raise AgentError(msg)
    return names[0]


def _proposes(value: type) -> bool:
    return callable(getattr(value, "propose", None))


def _attribute(module: ModuleType, name: str, text: str) -> Callable[..., Any]:
    value = getattr(module, name, None)
    if not callable(value) or (not inspect.isclass(value) and hasattr(value, "propose")):
        classes = [n for n, v in vars(module).items() if inspect.isclass(v) and _proposes(v)]
        msg = (
            f"Agent {text!r}: {name!r} is not a class or factory of {module.__name__}. "
            f"{suggest(name, classes)}"
        )
        raise AgentError(msg)
    factory: Callable[..., Any] = value
    return factory
