"""The results of a run: frames with one row a campaign, round or declaration, and a summary an arm.

Everything in a summary is a function of the frames, the protocol and the certificate. Reads no
oracle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import pandas as pd

from cads_env.certificate import Certificate, reach
from cads_env.errors import CertificateError, ProtocolError, RecordError, RunError
from cads_env.inference import Estimate, clopper_pearson_upper, clustered
from cads_env.protocol import Protocol, load_protocol
from cads_env.run.rows import DECLARATION_COLUMNS, ROUND_COLUMNS, campaign_columns

SMALLEST_RANGE: Final = 1.0
"""Below this mean(reference - twin), normalised net would divide by next to nothing."""

NO_SLOT: Final = "no slot is in reach"
"""Why an arm that is out of reach tells nothing."""


class Failure(NamedTuple):
    """A campaign that was not scored because the proposer's infrastructure broke.

    Attributes:
        arm: Its arm.
        registry: Its registry.
        seed: Its seed.
        reason: What the proposer said.
    """

    arm: str
    registry: str
    seed: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """The summary of one arm.

    Means are over its campaigns; over several registries they are means of the registries' means,
    so that every registry weighs the same however many seeds it was played with.

    Attributes:
        arm: Its name.
        n: Campaigns scored.
        failed: Campaigns that failed and are not averaged in.
        true: Mean declared hits.
        false: Mean declared nulls.
        fdr_bound: One-sided 95 % Clopper-Pearson upper bound of P(any false declaration) >= FDR.
        twin: Mean declared hits of the twin.
        net: Mean of true - twin with its interval: t on registry means, or the paired t over the
            seeds of one registry.
        gained: Mean hits declared by the arm only.
        lost: Mean hits declared by the twin only.
        reference: Mean declared hits of the effect-ranked reference, which knows the truth.
        normalised_net: mean net / mean (reference - twin); None where that range is below 1.
        raw_hits: Mean hits among the candidates read.
        reach: Last round whose fresh candidates can be declared, by registry size.
        slots: Mean proposal slots of a campaign.
        slots_in_reach: How many of them come early enough to be declared.
        filled: Mean slots that the proposer filled.
        filled_in_reach: How many of those come early enough to be declared.
    """

    arm: str
    n: int
    failed: int
    true: float
    false: float
    fdr_bound: float
    twin: float
    net: Estimate
    gained: float
    lost: float
    reference: float
    normalised_net: float | None
    raw_hits: float
    reach: Mapping[int, int]
    slots: float
    slots_in_reach: float
    filled: float
    filled_in_reach: float

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no slot is in reach and every net is 0, so that nothing could have been seen."""
        is_level = self.net.mean == 0 and not self.net.sd > 0
        return is_level and self.slots > 0 and self.slots_in_reach == 0


def arm_json(arm: ArmResult) -> dict[str, Any]:
    """A summary as JSON values: what is not defined is null."""

    def plain(value: Any) -> Any:
        if isinstance(value, Estimate):
            return plain(value._asdict())
        if isinstance(value, Mapping):
            return {str(key): plain(entry) for key, entry in value.items()}
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {field.name: plain(getattr(arm, field.name)) for field in fields(arm)}


@dataclass(frozen=True)
class RunResult:
    """Everything a run found.

    Attributes:
        campaigns: One row a scored campaign, columns as in `campaigns.jsonl`.
        rounds: One row a round of a scored campaign, as in `rounds.jsonl`.
        declarations: One row a declared candidate, as in `declarations.jsonl`.
        arms: Summary by arm, in the order of the agents.
        failures: Campaigns that failed.
        protocol: The resolved protocol.
        certificate: What judged the records.
        panel: Name of the panel or registry.
        identifiers: "named", "shuffled" or "blinded".
        twin: Mean declared hits of the twin over all campaigns, failed ones included.
        reference: The same of the effect-ranked reference.
        registry_count: Distinct registries among the campaigns that were scored.
        manifest: What the run's manifest says: resolved configuration, registries, versions.
        folder: Where the files are, or None.
    """

    campaigns: pd.DataFrame
    rounds: pd.DataFrame
    declarations: pd.DataFrame
    arms: Mapping[str, ArmResult]
    failures: Sequence[Failure]
    protocol: Protocol
    certificate: Certificate
    panel: str
    identifiers: str
    twin: float
    reference: float
    registry_count: int
    manifest: Mapping[str, Any]
    folder: str | None = None

    @classmethod
    def of(
        cls,
        rows: Mapping[str, Sequence[Mapping[str, Any]]],
        manifest: Mapping[str, Any],
        *,
        folder: str | None = None,
    ) -> RunResult:
        """The result that rows and a manifest make.

        Args:
            rows: Rows by kind: campaigns, rounds, declarations and failures.
            manifest: The run's manifest.
            folder: Where the files are, or None.

        Raises:
            RecordError: A row or the manifest lacks something.
        """
        config = manifest["config"]
        try:
            protocol = load_protocol(config["protocol"])
            certificate = Certificate(**config["certificate"])
            arms = _summaries(rows, [a["arm"] for a in config["agents"]], protocol, certificate)
            both = {
                (row["registry"], row["seed"]): (row["twin_true"], row["reference_true"])
                for name in ("campaigns", "failures")
                for row in rows[name]
            }
            failures = [Failure(*(row[f] for f in Failure._fields)) for row in rows["failures"]]
            panel, identifiers = config["panel"], config["identifiers"]
        except (KeyError, TypeError, ProtocolError, CertificateError) as error:
            msg = (
                f"The files of the run{f' in {folder}' if folder else ''} do not fit together "
                f"({type(error).__name__}: {error}). They were changed after they were written: "
                "put back a copy, or run again."
            )
            raise RecordError(msg) from error
        twin, reference = (
            mean_of_means([(registry, pair[i]) for (registry, _), pair in both.items()])
            for i in range(2)
        )
        return cls(
            campaigns=pd.DataFrame(rows["campaigns"], columns=campaign_columns(config)),
            rounds=pd.DataFrame(rows["rounds"], columns=ROUND_COLUMNS),
            declarations=pd.DataFrame(rows["declarations"], columns=DECLARATION_COLUMNS),
            arms=arms,
            failures=tuple(failures),
            protocol=protocol,
            certificate=certificate,
            panel=panel,
            identifiers=identifiers,
            twin=twin,
            reference=reference,
            registry_count=len({row["registry"] for row in rows["campaigns"]}),
            manifest=manifest,
            folder=folder,
        )

    @property
    def status(self) -> str:
        """Status of the run: "complete", or one with which the same command goes on."""
        return str(self.manifest["status"])

    @property
    def planned(self) -> int:
        """Campaigns of the whole run, whether played or not."""
        config = self.manifest["config"]
        return len(config["seeds"]) * len(config["agents"])

    @property
    def net(self) -> Estimate:
        """The net of the only agent.

        Raises:
            RunError: There are several agents; use `.arms[name].net`.
        """
        if len(self.arms) != 1:
            msg = (
                f"The run has {len(self.arms)} arms; take .arms[name].net: {', '.join(self.arms)}."
            )
            raise RunError(msg)
        return next(iter(self.arms.values())).net

    @property
    def scope(self) -> str:
        """What the result holds for."""
        if self.registry_count == 1:
            return "holds for this registry"
        return f"over {self.registry_count} registries"

    def __str__(self) -> str:
        """The summary as plain text: net with interval, n and detectable difference per arm."""
        c = self.certificate
        lines = [
            f"{self.protocol.name} on {self.panel} ({self.identifiers} identifiers, {self.scope}), "
            f"q = {c.q:g}, {bound_words(c)}"
        ]
        for name, arm in self.arms.items():
            if not arm.n:
                lines.append(f"{name}: net {arm.net}")
                continue
            lines.append(
                f"{name}: net {arm.net}; certified {arm.true:.2f} true, {arm.false:.2f} false "
                f"(P(any false) <= {arm.fdr_bound:.3f}); twin {arm.twin:.2f}; normalised net "
                f"{show_ratio(arm.normalised_net)}; slots in reach "
                f"{arm.slots_in_reach:.0f} of {arm.slots:.0f}"
            )
        lines += [f"failed: {f.arm}, seed {f.seed}: {f.reason}" for f in self.failures]
        return "\n".join(lines)


def bound_words(certificate: Certificate) -> str:
    """What bounds contamination: `epsilon_bar = 0.1`, or the audit with its parameters."""
    audit = certificate.audit
    if audit is None:
        return f"epsilon_bar = {certificate.epsilon_bar:g}"
    parts = [f"tau = {audit.tau:g}", f"Delta = {audit.Delta:g}", f"delta = {audit.delta:g}"]
    parts += [f"rho = {audit.rho:g}"] if audit.rho else []
    parts += [f"alpha_lo = {audit.alpha_lo:g}"] if audit.alpha_lo else []
    parts += ["a look at every control"] if audit.looks == "per_read" else []
    return f"audited cap ({', '.join(parts)})"


def show_ratio(value: float | None) -> str:
    """A ratio with two decimals, '-' where it is undefined."""
    return "-" if value is None else f"{value:.2f}"


def _summaries(
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    arms: Sequence[str],
    protocol: Protocol,
    certificate: Certificate,
) -> dict[str, ArmResult]:
    """The summary of every arm, in order."""
    parts: dict[str, dict[str, list[Mapping[str, Any]]]] = {
        arm: {"campaigns": [], "rounds": [], "failures": []} for arm in arms
    }
    for name in ("campaigns", "rounds", "failures"):
        for row in rows[name]:
            parts[row["arm"]][name].append(row)
    return {
        arm: summarise(
            arm, part["campaigns"], part["rounds"], len(part["failures"]), protocol, certificate
        )
        for arm, part in parts.items()
    }


def summarise(
    arm: str,
    campaigns: Sequence[Mapping[str, Any]],
    rounds: Sequence[Mapping[str, Any]],
    failed: int,
    protocol: Protocol,
    certificate: Certificate,
) -> ArmResult:
    """The summary of one arm from its rows.

    Args:
        arm: Its name.
        campaigns: Its campaign rows.
        rounds: Its round rows.
        failed: Its failed campaigns.
        protocol: Gives the reach.
        certificate: Gives the reach.
    """
    reference = _mean(campaigns, "reference_true")
    twin = _mean(campaigns, "twin_true")
    net = clustered([row["net"] for row in campaigns], [row["registry"] for row in campaigns])
    spread = reference - twin
    n = len(campaigns)
    with_false = sum(row["false"] > 0 for row in campaigns)
    last = {m: reach_of(protocol, certificate, reference, m) for m in {r["m"] for r in campaigns}}
    size = {(row["registry"], row["seed"]): row["m"] for row in campaigns}
    near = [r for r in rounds if r["round"] <= last[size[(r["registry"], r["seed"])]]]
    return ArmResult(
        arm=arm,
        n=n,
        failed=failed,
        true=_mean(campaigns, "true"),
        false=_mean(campaigns, "false"),
        fdr_bound=clopper_pearson_upper(with_false, n) if n else 1.0,
        twin=twin,
        net=net,
        gained=_mean(campaigns, "gained"),
        lost=_mean(campaigns, "lost"),
        reference=reference,
        normalised_net=net.mean / spread if spread >= SMALLEST_RANGE else None,
        raw_hits=_mean(campaigns, "tested_hits"),
        reach=last,
        slots=_per_campaign(rounds, "proposal_slots", n),
        slots_in_reach=_per_campaign(near, "proposal_slots", n),
        filled=_per_campaign(rounds, "accepted", n),
        filled_in_reach=_per_campaign(near, "accepted", n),
    )


def reach_of(protocol: Protocol, certificate: Certificate, reference: float, m: int) -> int:
    """Last round whose fresh candidates can be declared beside the reference's mean number."""
    k = min(max(1.0, reference), float(m))
    return reach(protocol, k, m, certificate=certificate)


def _mean(rows: Sequence[Mapping[str, Any]], column: str) -> float:
    return mean_of_means([(row["registry"], row[column]) for row in rows])


def mean_of_means(values: Sequence[tuple[str, float]]) -> float:
    """The mean over registries of the mean within each; NaN of nothing.

    Args:
        values: Registry and value, one a campaign.
    """
    groups: dict[str, list[float]] = {}
    for registry, value in values:
        groups.setdefault(registry, []).append(value)
    if not groups:
        return math.nan
    return math.fsum(math.fsum(g) / len(g) for g in groups.values()) / len(groups)


def _per_campaign(rows: Sequence[Mapping[str, Any]], column: str, n: int) -> float:
    return sum(row[column] for row in rows) / n if n else float("nan")
