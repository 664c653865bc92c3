"""Finding and building agents: by entry-point name, `module:Class`, file path, class or factory.

An agent is a proposer that other people can install; one instance plays one campaign. Never asks an
agent anything and never sees an oracle.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from cads_env.errors import AgentError, CadsError, suggest
from cads_env.proposer import Proposer, ProposerFailed
from cads_env.registry import Registry, RelabelMode
from cads_env.values import parse_value, plain_text, said

ENTRY_POINT_GROUP: Final = "cads_env.agents"

_module_numbers = itertools.count()


@dataclass(frozen=True)
class AgentSpec:
    """How to build one agent.

    Attributes:
        name: Name of its arm.
        source: Where it comes from, for the manifest.
        factory: Class or function that returns a new proposer.
        options: Keyword arguments of the factory.
        text: The text that names the agent, by which another process finds it; None for a class
            or factory that was handed in.
    """

    name: str
    source: str
    factory: Callable[..., Any] = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name where there is one: a file's module exists in this process alone."""
        if self.text is not None:
            return (_named, (self.name, self.text))
        return (AgentSpec, (self.name, self.source, self.factory, dict(self.options)))

    @property
    def code_sha256(self) -> str | None:
        """SHA-256 of the file that defines the factory; None where there is none."""
        try:
            path = inspect.getsourcefile(inspect.unwrap(self.factory))
            raw = Path(path or "").read_bytes()
        except (TypeError, OSError, ValueError):
            return None
        return hashlib.sha256(raw).hexdigest()

    @property
    def data_sha256(self) -> dict[str, str]:
        """SHA-256 of each file that an option names: another content is another agent."""
        found = {name: _sha256_of_file(value) for name, value in self.options.items()}
        return {name: digest for name, digest in found.items() if digest is not None}

    def build(self, seed: int) -> Proposer:
        """A new proposer for one campaign.

        Args:
            seed: Passed on as `seed=` when the factory accepts it.

        Raises:
            AgentError: The factory raised, refused its options, or returned no proposer.
        """
        options = dict(self.options)
        if _accepts_seed(self.factory):
            options.setdefault("seed", seed)
        try:
            agent = self.factory(**options)
        except (CadsError, ProposerFailed, KeyboardInterrupt):
            raise
        except BaseException as error:
            msg = (
                f"Agent {self.name!r} could not be built with {options!r}: "
                f"{type(error).__name__}: {said(error)}"
            )
            raise AgentError(msg) from error
        if not callable(getattr(agent, "propose", None)):
            msg = (
                f"Agent {self.name!r} built a {type(agent).__name__} without a propose(view) "
                "method; expected a proposer."
            )
            raise AgentError(msg)
        proposer: Proposer = agent
        return proposer

    def check_side_tables(
        self, agent: Proposer, registry: Registry, *, identifiers: RelabelMode = "named"
    ) -> None:
        """Raise unless the registry has every side table that the agent declares in `requires`.

        Args:
            agent: The agent.
            registry: As the agent would see it.
            identifiers: How its candidates were relabelled.

        Raises:
            AgentError: Names the missing tables and those that exist.
        """
        requires = getattr(agent, "requires", ())
        is_list = isinstance(requires, (tuple, list, set, frozenset))
        if not is_list or not all(isinstance(name, str) for name in requires):
            msg = (
                f"Agent {self.name!r} has requires = {requires!r}; expected a tuple of names of "
                "side tables, such as ('module',)."
            )
            raise AgentError(msg)
        missing = [name for name in requires if name not in registry.side_tables]
        if missing:
            tables = f"side table {', '.join(map(repr, missing))}"
            if identifiers == "blinded":
                msg = (
                    f"Agent {self.name!r} needs the {tables}, but identifiers='blinded' drops "
                    "every side table of every registry. Leave identifiers=blinded "
                    "(--identifiers blinded) out, say 'shuffled', or choose an agent that needs "
                    "no side table (such as random)."
                )
                raise AgentError(msg)
            present = ", ".join(sorted(registry.side_tables)) or "none"
            msg = (
                f"Agent {self.name!r} needs the {tables}, which "
                f"registry {registry.name!r} does not have (it has: {present}). Choose another "
                "registry or agent (such as random); a table declares one with prior= or module=."
            )
            raise AgentError(msg)


def _sha256_of_file(value: object) -> str | None:
    """SHA-256 of the file that an option names; None when it names none."""
    if not isinstance(value, (str, Path)):
        return None
    path = Path(value)
    try:
        # A pipe would never end.
        if not path.is_file():
            return None
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except (OSError, ValueError):
        return None


def _accepts_seed(factory: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False
    by_name = parameters.get("seed")
    if by_name is not None:
        return by_name.kind is not inspect.Parameter.POSITIONAL_ONLY
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    return {e.name: e for e in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)}


def agent_names() -> tuple[str, ...]:
    """Names of the installed agents, sorted."""
    return tuple(sorted(_entry_points()))


def resolve_agents(agents: object) -> list[AgentSpec]:
    """The specs of one or several agents.

    Args:
        agents: A name (`prior`, `replay-list:path=ranking.txt`), `module:Class`, a path
            (`my_agent.py`, `my_agent.py:MyAgent`), a class, a factory, a sequence of these, or a
            mapping of arm names to these.

    Returns:
        One spec an arm, with distinct names.

    Raises:
        AgentError: Something names no agent, or an instance was given instead of a class.
    """
    if isinstance(agents, Mapping):
        specs = [_renamed(_resolve(value), str(name)) for name, value in agents.items()]
    elif isinstance(agents, Sequence) and not isinstance(agents, str):
        specs = [_resolve(value) for value in agents]
    else:
        specs = [_resolve(agents)]
    if not specs:
        msg = "No agent was given; expected at least one, e.g. 'random'."
        raise AgentError(msg)
    return list(_with_distinct_names(specs))


def _renamed(spec: AgentSpec, name: str) -> AgentSpec:
    return replace(spec, name=plain_text(name))


def _named(name: str, text: str) -> AgentSpec:
    return _renamed(_resolve_text(text), name)


def _with_distinct_names(specs: Sequence[AgentSpec]) -> Iterator[AgentSpec]:
    taken: set[str] = set()
    for spec in specs:
        numbered = (f"{spec.name}-{number}" for number in itertools.count(2))
        name = next(n for n in itertools.chain([spec.name], numbered) if n not in taken)
        taken.add(name)
        yield spec if name == spec.name else _renamed(spec, name)


def _resolve(agent: object) -> AgentSpec:
    if isinstance(agent, AgentSpec):
        return agent
    if isinstance(agent, Path):
        agent = str(agent)
    if isinstance(agent, str):
        return _resolve_text(agent)
    if callable(agent) and not (hasattr(agent, "propose") and not inspect.isclass(agent)):
        name = plain_text(str(getattr(agent, "__name__", type(agent).__name__)))
        module = getattr(agent, "__module__", "?")
        return AgentSpec("agent" if name == "<lambda>" else name, f"{module}:{name}", agent)
    if hasattr(agent, "propose"):
        kind = type(agent).__name__
        msg = (
            f"Received an instance of {kind}; every campaign needs a new one. "
            f"Pass the class ({kind}) or a factory (lambda: {kind}(...))."
        )
        raise AgentError(msg)
    msg = f"Cannot use {agent!r} as an agent; expected a name, module:Class, path or class."
    raise AgentError(msg)


def _resolve_text(text: str) -> AgentSpec:
    head, _, tail = text.partition(":")
    points = _entry_points()
    if head in points:
        point = points[head]
        return AgentSpec(head, point.value, _load_entry(point), _options(tail, text), text)
    if head.endswith(".py") or text.endswith(".py"):
        path, _, name = text.partition(".py:") if ".py:" in text else (text[:-3], "", "")
        return _from_file(Path(path + ".py"), name, text)
    if tail:
        return _from_module(head, tail, text)
    msg = (
        f"Unknown agent {text!r}. {suggest(text, points)} "
        "An agent of your own is given as module:Class or path/to/file.py."
    )
    raise AgentError(msg)


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


def _from_module(module_name: str, attribute: str, text: str) -> AgentSpec:
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        msg = (
            f"Agent {text!r}: module {module_name!r} cannot be imported: "
            f"{type(error).__name__}: {error}. Installed agents: {', '.join(agent_names())}."
        )
        raise AgentError(msg) from error
    return AgentSpec(attribute, text, _attribute(module, attribute, text), text=text)


def _from_file(path: Path, name: str, text: str) -> AgentSpec:
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
    return AgentSpec(name, text, factory, text=f"{path.absolute()}:{name}")


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
