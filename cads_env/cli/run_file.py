"""What a run is to be, as a command line or a run file says it; the command line wins.

A run file is YAML with `agents` and, where they differ from what `cads run` does alone, the other
options of the command. Loads no agent and no registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from cads_env.cli.arguments import parse_audit, parse_seeds
from cads_env.errors import RunError, quoted, suggest
from cads_env.run.agent_files import is_yaml, read_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for; None or empty where nothing is said.

    Attributes:
        agents: Names, paths, or mappings of the form of an agent file.
        panel: Panel by name.
        registry: Registries by name or path, instead of a panel.
        options: Options of the source.
        protocol: Preset or YAML file.
        set: Fields of the protocol.
        budget: Times as many rounds.
        seeds: Campaigns.
        prompts: Values of the option `prompt`, each an arm.
        feedback: Settings by feedback, as in `cads_env.run.settings`.
        identifiers: Settings by identifiers.
        agent_options: Options of every agent that has them.
        q: FDR level of the certificate.
        epsilon_bar: Declared bound on contamination.
        audit: Fields of the audit.
        jobs: Processes of this machine.
        concurrency: Campaigns at once.
        max_cost: Cost at which the run stops.
        max_tokens: Tokens at which the run stops.
        keep_reads: Store reads however many.
        retry_failed: Play failed campaigns again.
    """

    agents: tuple[Any, ...] = ()
    panel: str | None = None
    registry: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    protocol: str | None = None
    set: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None
    seeds: tuple[int, ...] = ()
    prompts: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    q: float | None = None
    epsilon_bar: float | None = None
    audit: Mapping[str, Any] | None = None
    jobs: int | None = None
    concurrency: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    keep_reads: bool | None = None
    retry_failed: bool | None = None

    def over(self, other: Asked) -> Asked:
        """What is said here and, where nothing is, there.

        Mappings are put together key by key. Registries named here come without the options of a
        source that are meant for those there.
        """
        if self.panel is not None or self.registry:
            other = replace(other, panel=None, registry=(), options={})
        merged: dict[str, Any] = {}
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
                merged[one.name] = {**theirs, **mine}
            else:
                merged[one.name] = theirs if mine is None or mine == () else mine
        return Asked(**merged)


def with_run_files(asked: Asked) -> Asked:
    """What is asked for, with what the run file among the agents says.

    Raises:
        RunError: There are two run files, or one says something that cannot be read.
        AgentError: A YAML file is not there or holds no mapping.
    """
    found = {word: _run_file(word) for word in asked.agents}
    files = {word: data for word, data in found.items() if data is not None}
    if not files:
        return asked
    if len(files) > 1:
        msg = f"Two run files were given, {' and '.join(files)}; expected one of them."
        raise RunError(msg)
    word, data = files.popitem()
    own = tuple(agent for agent in asked.agents if agent != word)
    return replace(asked, agents=own).over(_asked_of(data, where=f"Run file {word!r}"))


def _run_file(word: Any) -> Mapping[Any, Any] | None:
    """What a run file holds; None for a word that names none."""
    if not isinstance(word, str) or not is_yaml(word):
        return None
    data = read_mapping(word)
    return data if "agents" in data else None


def _asked_of(data: Mapping[Any, Any], *, where: str) -> Asked:
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in _READ:
            msg = f"{where} has the unknown key {quoted(key)}. {suggest(str(key), _READ)}"
            raise RunError(msg)
        try:
            values[key] = _READ[key](value)
        except (TypeError, ValueError) as error:
            msg = f"{where} has {key}: {quoted(value)}; expected {error}."
            raise RunError(msg) from error
    if values.get("panel") is not None and values.get("registry"):
        msg = f"{where} has both panel and registry; expected one of them."
        raise RunError(msg)
    return Asked(**values)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        msg = "a text"
        raise ValueError(msg)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(e, str) and e for e in entries):
        msg = "a text or a list of texts"
        raise ValueError(msg)
    return tuple(entries)


def _agents(value: Any) -> tuple[Any, ...]:
    entries = [value] if isinstance(value, (str, Mapping)) else value
    if not isinstance(entries, list) or not entries:
        msg = "a list of agents: names, paths, or mappings with agent, arm and options"
        raise ValueError(msg)
    return tuple(entries)


def _names(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        msg = "names with values"
        raise ValueError(msg)
    return dict(value)


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        return tuple(parse_seeds(value))
    entries = value if isinstance(value, list) else [value]
    if not entries:
        msg = "at least one seed"
        raise ValueError(msg)
    return tuple(_whole(entry) for entry in entries)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        msg = "a whole number"
        raise ValueError(msg)
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        msg = "a number"
        raise ValueError(msg)
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        msg = "true or false"
        raise ValueError(msg)
    return value


def _audit(value: Any) -> Mapping[str, Any] | None:
    if value is True:
        return {}
    return parse_audit(value) if isinstance(value, str) else _names(value)


_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "agents": _agents,
    "panel": _text,
    "registry": _texts,
    "options": _names,
    "protocol": _text,
    "set": _names,
    "budget": _whole,
    "seeds": _seeds,
    "prompts": _texts,
    "feedback": _texts,
    "identifiers": _texts,
    "agent_options": _names,
    "q": _number,
    "epsilon_bar": _number,
    "audit": _audit,
    "jobs": _whole,
    "concurrency": _whole,
    "max_cost": _number,
    "max_tokens": _whole,
    "keep_reads": _flag,
    "retry_failed": _flag,
}
"""What each key of a run file takes, which are the fields of `Asked`."""


def split_commas(values: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """Values of an option that may be repeated, or hold several between commas.

    Args:
        values: As typed; None where the option was not.
        what: The option, for the message.

    Raises:
        RunError: The option was typed and holds nothing.
    """
    parts = tuple(
        part.strip() for value in values or () for part in value.split(",") if part.strip()
    )
    if values and not parts:
        msg = f"{what} was given without a value; expected one, or leave {what} out."
        raise RunError(msg)
    return parts
