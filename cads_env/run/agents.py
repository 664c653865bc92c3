"""Agents as specs: what builds each, under which name, with which options.

An agent is a proposer that other people can install; one instance plays one campaign. Never asks an
agent anything and never sees an oracle.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from cads_env.errors import AgentError, CadsError
from cads_env.proposer import Journal, Proposer, ProposerFailed, Unrecorded
from cads_env.registry import Registry, RelabelMode
from cads_env.run.agent_files import agent_file_of
from cads_env.run.executors.stopping import RunStopped
from cads_env.run.factories import (
    ENTRY_POINT_GROUP,
    Factory,
    agent_names,
    factory_of,
    find_factory,
)
from cads_env.values import plain_text, said

__all__ = [
    "ENTRY_POINT_GROUP",
    "AgentSpec",
    "agent_names",
    "agent_of_manifest",
    "find_agents",
    "resolve_agents",
]


@dataclass(frozen=True)
class AgentSpec:
    """How to build one agent.

    Attributes:
        name: Name of its arm.
        source: Where it comes from, for the manifest.
        factory: Class or function that returns a new proposer.
        options: Keyword arguments of the factory.
        text: The text that names the factory, by which another process finds it; None for a class
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
            return (_named, (self.name, self.text, dict(self.options)))
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

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the factory's parameters.

        A class that hands `**options` on to its base class has the base's parameters too; other
        `**options` may mean anything and do not count.
        """
        return _parameters(self.factory)

    def accepts(self, option: str) -> bool:
        """Whether the factory has a parameter of this name, as in `parameters`."""
        return option in self.parameters

    def resolved(self) -> AgentSpec:
        """The same agent with options that need no file any more, and its arm marked.

        A factory may have `resolve_options(options)`, which puts the content of files into the
        options and gives what it gave before when called again, and `arm_suffix(options)`, which
        gives the ending of an arm's name that marks it (`+guided`).

        Raises:
            AgentError: One of the two raised, or gave something of another kind.
        """
        spec = self
        if (resolve := getattr(self.factory, "resolve_options", None)) is not None:
            spec = replace(spec, options=dict(self._asked(resolve, Mapping)))
        if (mark := getattr(self.factory, "arm_suffix", None)) is not None:
            suffix = spec._asked(mark, str)
            if not spec.name.endswith(suffix):
                spec = _renamed(spec, spec.name + suffix)
        return spec

    def _asked(self, hook: Callable[..., Any], kind: type) -> Any:
        try:
            answer = hook(dict(self.options))
        except CadsError:
            raise
        except Exception as error:
            msg = (
                f"Agent {self.name!r} cannot use its options {dict(self.options)!r}: "
                f"{type(error).__name__}: {said(error)}"
            )
            raise AgentError(msg) from error
        if not isinstance(answer, kind):
            msg = (
                f"Agent {self.name!r}: {getattr(hook, '__name__', 'its hook')}(options) gave a "
                f"{type(answer).__name__}; expected a {kind.__name__}."
            )
            raise AgentError(msg)
        return answer

    def build(self, seed: int, journal: Journal | None = None) -> Proposer:
        """A new proposer for one campaign.

        Args:
            seed: Passed on as `seed=` when the factory accepts it.
            journal: What keeps the proposer's exchanges with the world outside, passed on as
                `journal=` when the factory has a parameter of that name. None: outside a run,
                where nothing is kept.

        A proposer may have `begin(*, seed=None, journal=None)`; it is called with those of the two
        that its factory did not take.

        Raises:
            AgentError: The factory raised, refused its options, or returned no proposer.
        """
        takes = self.parameters
        takes_seed = "seed" in takes or _takes_any_keyword(self.factory)
        options = dict(self.options)
        if takes_seed:
            options.setdefault("seed", seed)
        if "journal" in takes and (journal is not None or "journal" not in options):
            options["journal"] = Unrecorded() if journal is None else journal
        agent = self._guarded(lambda: self.factory(**options))
        if not callable(getattr(agent, "propose", None)):
            msg = (
                f"Agent {self.name!r} built a {type(agent).__name__} without a propose(view) "
                "method; expected a proposer."
            )
            raise AgentError(msg)
        # What the factory could not hand on.
        untold: dict[str, Any] = {} if takes_seed else {"seed": seed}
        if journal is not None and "journal" not in takes:
            untold["journal"] = journal
        begin = getattr(agent, "begin", None)
        if callable(begin) and {"seed", "journal"} <= _parameters(begin) and untold:
            self._guarded(lambda: begin(**untold))
        proposer: Proposer = agent
        return proposer

    def _guarded(self, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except (CadsError, ProposerFailed, KeyboardInterrupt, RunStopped):
            raise
        except BaseException as error:
            msg = (
                f"Agent {self.name!r} could not be built with {dict(self.options)!r}: "
                f"{type(error).__name__}: {said(error)}"
            )
            raise AgentError(msg) from error

    def check_side_tables(
        self, agent: object, registry: Registry, *, identifiers: RelabelMode = "named"
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


def _parameters(factory: Callable[..., Any]) -> frozenset[str]:
    """Names that a callable takes as keywords, those of a base class's constructor included."""
    classes = factory.__mro__[:-1] if inspect.isclass(factory) else [factory]
    names: set[str] = set()
    for one in classes:
        names |= {name for name, p in _signature(one).items() if p.kind in _BY_NAME}
        if not _takes_any_keyword(one):
            break
    return frozenset(names)


_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _signature(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return {}


def _takes_any_keyword(factory: Callable[..., Any]) -> bool:
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in _signature(factory).values())


def resolve_agents(agents: object) -> list[AgentSpec]:
    """The specs of one or several agents, ready to play.

    Args:
        agents: A name (`prior`, `replay-list:path=ranking.txt`), an agent file (`mine.yaml`), or
            the name of one that comes with the package, `module:Class`, a path (`my_agent.py`,
            `my_agent.py:MyAgent`), a class, a factory (one with an attribute `agent_file`, a
            mapping of the form of such a file, counts as that file), a sequence of these (or of
            mappings of the form of an agent file), or a mapping of arm names to these.

    Returns:
        One spec an arm, with distinct names and options that need no file, see
        `AgentSpec.resolved`.

    Raises:
        AgentError: Something names no agent, or an instance was given instead of a class.
    """
    return list(_with_distinct_names([spec.resolved() for spec in find_agents(agents)]))


def find_agents(agents: object) -> list[AgentSpec]:
    """The specs of one or several agents, with options as they were given.

    Args:
        agents: As for `resolve_agents`.

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


def agent_of_manifest(entry: Mapping[str, Any]) -> AgentSpec:
    """The spec of an arm of a run, from what its manifest says.

    Args:
        entry: One of `config.agents`.

    Raises:
        AgentError: What stands there as its source cannot be found or loaded.
    """
    arm, source = str(entry["arm"]), str(entry["source"])
    if "<" in source:
        msg = f"Arm {arm!r} was made in Python ({source}), which no other process can find."
        raise AgentError(msg)
    options = {**(entry.get("options") or {})}
    found = _spec_of(find_factory(source))
    return replace(found, name=arm, source=source, options=options)


def _renamed(spec: AgentSpec, name: str) -> AgentSpec:
    return replace(spec, name=plain_text(name))


def _named(name: str, text: str, options: Mapping[str, Any]) -> AgentSpec:
    return replace(_spec_of(find_factory(text)), name=name, options=options)


def _spec_of(found: Factory) -> AgentSpec:
    return AgentSpec(found.name, found.source, found.make, found.options, found.text)


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
        return _spec_of(find_factory(agent))
    if isinstance(agent, Mapping):
        return _spec_of(factory_of(agent_file_of(agent, where="An agent given as a mapping")))
    if isinstance(told := getattr(agent, "agent_file", None), Mapping) and callable(agent):
        # A factory that says what it makes: another process, and a replay, can make it again.
        return _spec_of(factory_of(agent_file_of(told, where=f"{agent!r:.80}")))
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
