"""Zhou and Liu's robust bandit beside the certificate: its burn-in, its evidence, and itself.

The scale of its evidence is not printed, so both candidates are judged. A comparator only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate, zhou_liu_burn_in
from cads_env.protocol import load_protocol
from cads_env.studies.registries import registry_of
from cads_env.studies.rules import column, judge
from cads_env.studies.study import Cell, Config, Row, Study, Summary
from cads_env.studies.tables import Entry, Table
from cads_env.studies.zhou_liu_algorithm import algorithm_2

_SWEEP: Final = "evidence of the sweep"
_MATCHED: Final = "Algorithm 2, matched budget"
_SMALL: Final = "Algorithm 2, small registry"
_SCALES: Final = {"one": 1.0, "half": 0.5}
"""The scale as a multiple of sqrt(epsilon) / s: of unit normaliser 1 + 2 epsilon, and the default
of the code that the method builds on."""


def play_cell(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Row]:
    """The rows of some seeds.

    Args:
        settings: `registry`, `protocol`, `epsilon`, `q`, `s`; with `reads`, Algorithm 2 spends that
            budget, without it the sweep is played and its evidence judged.
        seeds: Campaign seeds.

    Returns:
        A row a seed. Of a sweep: `reads`, `one.declared` and `half.declared` (at either scale),
        `cads.declared`. Of Algorithm 2: `reads`, `pulls` (a burn-in's per arm), `burn_in_complete`
        (1 or 0), `declared`, `fdp` and `power`.
    """
    if "reads" in settings:
        return [_bandit(settings, seed) for seed in seeds]
    pair = registry_of(settings["registry"])
    epsilon, q, s = settings["epsilon"], settings["q"], settings["s"]
    protocol = load_protocol(settings["protocol"], epsilon=epsilon)
    batch = play(open_screen([pair] * len(seeds), list(seeds), protocol), [None] * len(seeds))
    certificate = Certificate(epsilon_bar=epsilon, s=s)
    rows: list[dict[str, float]] = [{"reads": int(batch.values.shape[1])} for _ in seeds]
    judged = [("cads", "cads", None)]
    judged += [
        (name, "zhou-liu", share * math.sqrt(epsilon) / s) for name, share in _SCALES.items()
    ]
    for name, rule, lam in judged:
        found = judge(
            batch, pair[1].labels, certificate=certificate, qs=[q], rules=(rule,), lam=lam
        )
        for row, counts in zip(rows, found, strict=True):
            row[f"{name}.declared"] = (
                counts[column(rule, q, "true")] + counts[column(rule, q, "false")]
            )
    return list(rows)


def _bandit(settings: Mapping[str, Any], seed: int) -> Row:
    oracle = registry_of(settings["registry"])[1]
    epsilon, q = settings["epsilon"], settings["q"]
    protocol = load_protocol(settings["protocol"], epsilon=epsilon)
    outcome = algorithm_2(
        oracle, seed, protocol, reads=settings["reads"], epsilon=epsilon, q=q, s=settings["s"]
    )
    true = int(np.count_nonzero(oracle.labels[outcome.declared]))
    count = len(outcome.declared)
    return {
        "reads": outcome.reads,
        "pulls": zhou_liu_burn_in(oracle.m, q, epsilon),
        "burn_in_complete": int(outcome.burn_in_complete),
        "declared": count,
        "fdp": (count - true) / max(count, 1),
        "power": true / oracle.hit_count,
    }


def cells(config: Config, items: Collection[str]) -> list[Cell]:
    """The sweep, Algorithm 2 at its budget, and Algorithm 2 where the burn-in can be paid."""
    common = {name: config[name] for name in ("epsilon", "q", "s")}
    found = []
    for name, part in ((_SWEEP, "sweep"), (_MATCHED, "matched"), (_SMALL, "small")):
        settings = {key: value for key, value in config[part].items() if key != "seeds"}
        found.append(Cell(name, {**settings, **common}, range(config[part]["seeds"])))
    return found


def table_s3(config: Config, summary: Summary) -> Table:
    """The burn-in, what Algorithm 2 returns at the matched budget, and its evidence at the end."""
    published, q = config["published"], config["q"]
    epsilon, s = config["epsilon"], config["s"]
    scale = math.sqrt(epsilon) / s
    pulls = summary.mean(_MATCHED, "pulls")
    arms = round(published["burn_in_reads"] / published["pulls_per_arm"])

    def mean(cell: str, name: str, measure: str, printed: Any = None, within: Any = None) -> Entry:
        expected = within if printed is None else (printed, printed)
        return Entry(
            row=(cell,),
            measure=measure,
            ours=summary.mean(cell, name),
            mc_se=summary.mc_se(cell, name),
            published=printed,
            expected=expected,
        )

    required = published["burn_in_reads"]
    entries = [
        Entry(
            row=("burn-in",),
            measure="pulls an arm",
            ours=pulls,
            published=published["pulls_per_arm"],
            expected=(published["pulls_per_arm"],) * 2,
        ),
        Entry(
            row=("burn-in",),
            measure="reads",
            ours=pulls * arms,
            published=required,
            expected=(required, required),
        ),
        mean(_SWEEP, "reads", "reads", published["budget"]),
        mean(_MATCHED, "reads", "reads", published["budget"]),
        mean(_MATCHED, "declared", "declared", published["algorithm_2"]),
        mean(_MATCHED, "burn_in_complete", "burn-in complete", within=(0, 0)),
    ]
    for name, share in _SCALES.items():
        entry = mean(
            _SWEEP, f"{name}.declared", f"declared, lam = {share * scale:.3f}",
            published["terminal_evidence"],
        )  # fmt: skip
        entries.append(entry)
    entries += [
        mean(_SWEEP, "cads.declared", "declared by CADS"),
        mean(_SMALL, "reads", "reads", within=(config["small"]["reads"],) * 2),
        mean(_SMALL, "burn_in_complete", "burn-in complete", within=(1, 1)),
        mean(_SMALL, "declared", "declared"),
        mean(_SMALL, "fdp", "FDR", within=(0.0, q)),
        mean(_SMALL, "power", "power"),
    ]
    return Table(
        title=f"Table S3: Zhou and Liu at epsilon = {epsilon:g}, q = {q:g}",
        label_columns=("what",),
        entries=entries,
        caption=(
            "Before its burn-in ends Algorithm 2 declares nothing, by its own rule; at the reads "
            "of the certificate it returns the empty set. The printed text fixes the burn-in; the "
            "scale lam of the evidence is not printed, so both candidates are shown, and the arm "
            "that is pulled after the burn-in is the one with the largest robust mean, which is "
            "inferred. The small registry shows the algorithm at work where the burn-in is paid."
        ),
    )


STUDY: Final = Study(
    name="zhou-liu",
    title="Zhou and Liu: the robust bandit at the reads of the certificate",
    about=(
        "The literal burn-in of Algorithm 2, the set it returns at the matched budget, its "
        "evidence on the reads of the sweep, and the algorithm on a registry of 40 candidates."
    ),
    items={"table-s3": table_s3},
    cells=cells,
    play=play_cell,
)
