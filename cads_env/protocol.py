"""Protocols: everything that can change a read, as one frozen, validated, hashed value.

A protocol is a preset of `cads_configs/protocols`, a YAML file, or either with overrides; an
override changes the name (`standard+rounds=24`). What is told to the certificate is not part of the
hash, since it never changes a read. Never imports a channel, a screen or a certificate.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import yaml

from cads_env.errors import ProtocolError, suggest
from cads_env.protocol_checks import problems_of
from cads_env.protocol_files import preset_names, read_fields
from cads_env.schedule import RoundPlan, plan
from cads_env.values import parse_value

__all__ = [
    "BOTH_FEEDBACKS",
    "FEEDBACK_MODES",
    "CertificateNumbers",
    "Feedback",
    "Protocol",
    "load_protocol",
    "preset_names",
    "protocol_from_mapping",
]

Feedback = Literal["full", "none", "permuted"]
FEEDBACK_MODES: Final[tuple[Feedback, ...]] = ("full", "none", "permuted")
BOTH_FEEDBACKS: Final = "feedback"
"""Alias in overrides: sets `feedback_proposer` and `feedback_reselection` together."""


_REALS: Final = (
    "reread_fraction", "rank_epsilon_bar", "rank_theta", "rank_s", "rank_q", "high_above",
    "noise_sd", "epsilon", "audit_epsilon",
)  # fmt: skip
_NOT_READS: Final = ("name", "certificate")
_NOT_TWIN: Final = ("quota", "first_quota", "attempts", "feedback_proposer")
_AUDIT: Final[Mapping[str, Any]] = MappingProxyType(
    {"audit_controls": 0, "audit_timing": "interleaved", "audit_epsilon": None}
)
"""Fields that are written and hashed only where they differ from these values, so that a protocol
without controls keeps the hash that it has always had."""


class CertificateNumbers(NamedTuple):
    """The default certificate of a preset.

    Attributes:
        epsilon_bar: Declared bound on the contamination probability, in [0, 1].
        theta: Working alternative, in units of the effect.
        s: Assumed clean sd of a read, same units.
        q: FDR level, in (0, 1).
    """

    epsilon_bar: float = 0.1
    theta: float = 0.7
    s: float = 0.5
    q: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How a campaign spends its reads and what is shown to whom.

    Attributes:
        name: Preset name, with its overrides.
        rounds: Number of rounds, at least 1.
        first_fresh: Fresh slots of round 0.
        fresh: Fresh slots of every later round.
        reread_candidates: Observed candidates read again in each later round.
        reread_fraction: Instead of a fixed number: int(fraction * observed) of them; None for
            fixed.
        reads_each: Reads that a re-read candidate gets in one round.
        on_exhausted: What becomes of fresh slots when no candidate is left: "reread" (one read of
            the next-ranked candidate each, cycling) or "stop" (nothing).
        rank_by: What re-selection ranks by: "mean" (of a candidate's reads) or "log_evidence".
        graduation: Whether candidates whose evidence suffices alone (E >= m/q) rank after all
            others.
        rank_epsilon_bar: epsilon_bar of the evidence that ranks and graduates.
        rank_theta: theta of that evidence.
        rank_s: s of that evidence.
        rank_q: q of graduation.
        feedback_proposer: What the proposer sees: "full", "none" or "permuted".
        feedback_reselection: What re-selection sees, likewise.
        high_above: A candidate reads high when its mean exceeds this.
        quota: Most proposed candidates accepted in a later round; None for all fresh slots.
        first_quota: The same for round 0.
        attempts: Tries that a proposer may use in one round (its own business; recorded).
        fallback_priority: Whether the fallback order is drawn once a "campaign" or once a "round".
        noise_sd: Clean sd of a read, in units of the effect.
        epsilon: Probability that a read is contaminated, in [0, 1].
        law: Name of the contamination law: "uniform", "point-mass", "subthreshold", "mixed-sign"
            (every read at the same rate), "reread", "past-high", "near-boundary", "campaign-coin"
            (rates that aim), or a user's own as "my_package.laws:MyLaw" or "my_laws.py:MyLaw", a
            path from the working directory. See `cads_env.contamination`.
        law_options: Keyword arguments of the law, numbers and texts; whole numbers become floats.
        audit_controls: One-read blinded controls: clean law N(0, noise_sd^2), same contamination
            law. They come on top of the reads of the schedule, and nobody but the certificate ever
            sees them. A protocol that graduates should then rank with a `rank_epsilon_bar` near the
            bound that they can give, or candidates stop being read too early.
        audit_timing: When controls are revealed to the certificate: "interleaved" (split evenly
            over the rounds, each part at the end of its round) or "front" (all before round 0).
        audit_epsilon: Probability that a control is contaminated, in [0, 1]; None for `epsilon`.
        certificate: The default certificate; not part of the hash.
    """

    name: str
    rounds: int
    first_fresh: int
    fresh: int
    reread_candidates: int = 0
    reread_fraction: float | None = None
    reads_each: int = 1
    on_exhausted: Literal["reread", "stop"] = "reread"
    rank_by: Literal["mean", "log_evidence"] = "mean"
    graduation: bool = False
    rank_epsilon_bar: float = 0.1
    rank_theta: float = 0.7
    rank_s: float = 0.5
    rank_q: float = 0.1
    feedback_proposer: Feedback = "full"
    feedback_reselection: Feedback = "full"
    high_above: float = 0.35
    quota: int | None = None
    first_quota: int | None = None
    attempts: int = 2
    fallback_priority: Literal["campaign", "round"] = "campaign"
    noise_sd: float = 0.5
    epsilon: float = 0.1
    law: str = "uniform"
    law_options: Mapping[str, Any] = field(default_factory=lambda: {"low": 2.0, "high": 4.0})
    audit_controls: int = 0
    audit_timing: Literal["interleaved", "front"] = "interleaved"
    audit_epsilon: float | None = None
    certificate: CertificateNumbers = CertificateNumbers()

    def __post_init__(self) -> None:
        """Validate every field at once.

        Raises:
            ProtocolError: Lists everything that is wrong.
        """
        if not isinstance(self.law_options, Mapping):
            msg = f"law_options is {self.law_options!r}; expected a mapping of option names."
            raise ProtocolError(msg)
        object.__setattr__(self, "law_options", MappingProxyType(dict(self.law_options)))
        numbers = self.certificate
        if not isinstance(numbers, CertificateNumbers):
            object.__setattr__(self, "certificate", _certificate_numbers(numbers))
        problems = problems_of(self._values())
        if problems:
            msg = f"Protocol {self.name!r} is invalid:\n  " + "\n  ".join(problems)
            raise ProtocolError(msg)
        # 0 and 0.0 are one protocol, so they must have one hash.
        for name in _REALS:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(value))
        options = {k: float(v) if type(v) is int else v for k, v in self.law_options.items()}
        object.__setattr__(self, "law_options", MappingProxyType(options))
        numbers = CertificateNumbers(*map(float, self.certificate))
        object.__setattr__(self, "certificate", numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the plain mapping (a mapping proxy cannot be pickled)."""
        return (protocol_from_mapping, (self.to_dict(),))

    @property
    def hash(self) -> str:
        """SHA-256 of everything that can change a read: all fields but `name` and `certificate`."""
        return self._digest(_NOT_READS)

    @property
    def twin_hash(self) -> str:
        """SHA-256 of what can change the twin: `hash` less quotas, attempts, proposer feedback."""
        return self._digest((*_NOT_READS, *_NOT_TWIN))

    def _digest(self, without: tuple[str, ...]) -> str:
        fields = {k: v for k, v in self.to_dict().items() if k not in without}
        canonical = json.dumps(["cads-protocol-1", fields], sort_keys=True, allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def plan(self, m: int) -> tuple[RoundPlan, ...]:
        """What each round spends on a registry of m candidates."""
        return plan(self, m)

    def batch(self, m: int) -> int:
        """The schedule's largest number of fresh slots: the length of an env action."""
        return max(1, max(p.fresh for p in self.plan(m)))

    def most_reads(self, round: int, m: int) -> int:
        """The most reads that a candidate first read in `round` can have at the end."""
        later = self.plan(m)[round + 1 :]
        return 1 + sum(p.most_rereads_of_one for p in later)

    def slots_for(self, round: int, fresh: int) -> int:
        """Proposals that a round accepts: its fresh slots, capped by the quota."""
        quota = self.first_quota if round == 0 else self.quota
        return fresh if quota is None else min(fresh, quota)

    @property
    def audit_starts(self) -> tuple[int, ...]:
        """Controls revealed before each round, T of them; empty without controls."""
        if not self.audit_controls:
            return ()
        if self.audit_timing == "front":
            return (self.audit_controls,) * self.rounds
        # The first A mod T rounds get one control more than the others, as np.array_split does.
        each, longer = divmod(self.audit_controls, self.rounds)
        return tuple(each * t + min(t, longer) for t in range(self.rounds))

    def override(self, **changes: Any) -> Protocol:
        """The same protocol with some fields changed, and renamed after them.

        Args:
            **changes: Field values by name; `feedback` sets both feedbacks. A value equal to the
                present one changes nothing. Another `law` starts from that law's own options.

        Returns:
            A protocol named like `standard+rounds=24`; `self` when nothing changes.

        Raises:
            ProtocolError: Unknown field (with a suggestion) or invalid value.
        """
        changes = _expand(changes)
        known = {f.name: f for f in dataclasses.fields(self)}
        for key in changes:
            if key not in known or key == "name":
                msg = f"Unknown protocol field {key!r}. {suggest(key, set(known) - {'name'})}"
                raise ProtocolError(msg)
        if isinstance(changes.get("certificate"), Mapping):
            # Fields that are not named keep the preset's value.
            given = self.certificate._asdict() | dict(changes["certificate"])
            changes["certificate"] = _certificate_numbers(given)
        if changes.get("law", self.law) != self.law and self.law_options:
            # The options of one law mean nothing to another.
            changes.setdefault("law_options", {})
        changed = {k: v for k, v in changes.items() if not _same(getattr(self, k), v)}
        if not changed:
            return self
        base, *earlier = self.name.split("+")
        named = dict(entry.split("=", 1) for entry in earlier if "=" in entry)
        named |= {k: _show(v) for k, v in changed.items()}
        suffix = "".join(f"+{k}={named[k]}" for k in known if k in named)
        return dataclasses.replace(self, name=base + suffix, **changed)

    def with_budget(self, factor: int) -> Protocol:
        """The protocol with `factor` times as many rounds (1x, 2x, 4x budgets)."""
        return self.override(rounds=self.rounds * factor)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain YAML and JSON values, those of the audit only where they are set."""
        values = self._values()
        return {k: v for k, v in values.items() if k not in _AUDIT or v != _AUDIT[k]}

    def _values(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["law_options"] = dict(self.law_options)
        values["certificate"] = self.certificate._asdict()
        return values

    def to_yaml(self) -> str:
        """The protocol as a YAML file that `load_protocol` reads back."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False)


def _certificate_numbers(value: object) -> CertificateNumbers:
    if not isinstance(value, Mapping):
        msg = f"certificate is {value!r}; expected a mapping with epsilon_bar, theta, s, q."
        raise ProtocolError(msg)
    unknown = set(value) - set(CertificateNumbers._fields)
    if unknown:
        name = str(min(unknown, key=str))
        msg = f"Unknown certificate field {name!r}. {suggest(name, CertificateNumbers._fields)}"
        raise ProtocolError(msg)
    return CertificateNumbers(**value)


def _expand(changes: Mapping[str, Any]) -> dict[str, Any]:
    changes = dict(changes)
    if BOTH_FEEDBACKS in changes:
        mode = changes.pop(BOTH_FEEDBACKS)
        changes = {"feedback_proposer": mode, "feedback_reselection": mode} | changes
    return changes


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and a == b


def _show(value: object) -> str:
    if isinstance(value, CertificateNumbers):
        value = value._asdict()
    if isinstance(value, Mapping):
        return json.dumps(dict(value), sort_keys=True, separators=(",", ":"))
    if isinstance(value, float) and "e" in repr(value):
        # 0.00001 rather than 1e-05, and no plus sign: a name is read back by `load_protocol`.
        return f"{Decimal(repr(value)):f}"
    return "null" if value is None else str(value)


def load_protocol(
    protocol: str | Path | Mapping[str, Any] | Protocol, **overrides: Any
) -> Protocol:
    """A protocol by preset name, path of a YAML file, mapping, or as it is, with overrides.

    Args:
        protocol: `standard`, `standard+rounds=24`, `my_protocol.yaml`, a mapping of all fields, or
            a `Protocol`.
        **overrides: Fields to change; see `Protocol.override`.

    Returns:
        The validated protocol.

    Raises:
        ProtocolError: Unknown name, unreadable file, unknown key (with a suggestion), invalid
            value.
    """
    if isinstance(protocol, Protocol):
        return protocol.override(**overrides)
    if isinstance(protocol, Mapping):
        return protocol_from_mapping(protocol).override(**overrides)
    if not isinstance(protocol, (str, Path)):
        msg = f"A protocol is a name, a path, a mapping or a Protocol; received {protocol!r}."
        raise ProtocolError(msg)
    text = str(protocol)
    # A path may hold a plus sign of its own; an override always holds an equals sign.
    base, *entries = [text] if "=" not in text else text.split("+")
    named = _parse_overrides(entries, text)
    loaded = protocol_from_mapping(read_fields(base), base)
    return loaded.override(**(named | overrides))


def _parse_overrides(entries: list[str], whole: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals:
            msg = f"Override {entry!r} in {whole!r} has no value; expected name=value."
            raise ProtocolError(msg)
        named[key] = parse_value(value)
    return named


def protocol_from_mapping(data: Mapping[str, Any], origin: str = "mapping") -> Protocol:
    """A protocol from a mapping of its fields.

    Args:
        data: Field values by name; fields with a default may be left out.
        origin: What to call it in messages.

    Raises:
        ProtocolError: Unknown key (with a suggestion), missing field or invalid value.
    """
    known = {f.name: f for f in dataclasses.fields(Protocol)}
    for key in data:
        if key not in known:
            msg = f"Protocol {origin!r} has an unknown key {key!r}. {suggest(str(key), known)}"
            raise ProtocolError(msg)
    missing = [
        f.name
        for f in known.values()
        if f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
        and f.name not in data
    ]
    if missing:
        msg = f"Protocol {origin!r} lacks {', '.join(missing)}."
        raise ProtocolError(msg)
    law_options = data.get("law_options", {})
    if not isinstance(law_options, Mapping):
        msg = f"Protocol {origin!r}: law_options is {law_options!r}; expected a mapping."
        raise ProtocolError(msg)
    try:
        return Protocol(**data)
    except ProtocolError as error:
        if origin == "mapping" or origin in str(error):
            raise
        msg = f"{origin}: {error}"
        raise ProtocolError(msg) from error
