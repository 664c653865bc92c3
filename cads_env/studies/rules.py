"""The certificate and its comparators on the same records, at several levels at once.

Each rule judges the same reads over the complete family; evidence is accumulated once a rule and
serves every level. Never plays a campaign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate import Certificate
from cads_env.certificate.cap import working_model
from cads_env.certificate.comparators import z_test_p_values
from cads_env.certificate.ebh import (
    check_family_size,
    check_level,
    cuts_log_e,
    cuts_p,
    family_indices,
)
from cads_env.certificate.evidence import Increments, capped_increments, sums_by_slot
from cads_env.certificate.zhou_liu import ZhouLiuIncrement
from cads_env.record import RecordBatch

RULES: Final = ("cads", "naive", "uncapped", "zhou-liu")
"""The capped certificate; BH on z-test p-values; e-BH on the uncapped likelihood ratio; e-BH on
Zhou-Liu evidence."""

_MEASURES: Final = ("true", "false", "fdp", "power")

RULE_TITLES: Final = {
    "cads": "CADS",
    "naive": "naive BH",
    "uncapped": "uncapped LR e-BH",
    "zhou-liu": "Zhou-Liu evidence",
}


def column(rule: str, q: float, measure: str) -> str:
    """The name of a column: `cads@0.1.power`.

    Args:
        rule: One of `RULES`.
        q: Level.
        measure: "true", "false", "fdp" or "power".
    """
    return f"{rule}@{q:g}.{measure}"


def judge(
    batch: RecordBatch,
    labels: NDArray[np.bool_],
    *,
    certificate: Certificate,
    qs: Sequence[float],
    rules: Sequence[str] = RULES,
    lam: float | None = None,
) -> list[dict[str, float]]:
    """What each rule declares of n campaigns on one registry, counted.

    Args:
        batch: The records.
        labels: Which candidates are hits, shape (m,).
        certificate: Gives epsilon_bar, theta and s to every rule; its q is not used.
        qs: Levels.
        rules: Some of `RULES`.
        lam: Scale of the Zhou-Liu increment; None for sqrt(epsilon_bar) / s.

    Returns:
        One mapping a campaign: for every rule and level the declared hits (`true`), declared nulls
        (`false`), `fdp` = false / declared (0 of nothing) and, where the registry has hits, `power`
        = true / hits.
    """
    levels, m = [check_level(q) for q in qs], check_family_size(batch.m)
    if not levels:
        return [{} for _ in range(len(batch))]
    hits = int(labels.sum())
    names = {
        (r, q): [column(r, q, measure) for measure in _MEASURES] for r in rules for q in levels
    }
    strengths = _strengths(batch, certificate, rules, lam)
    rows = []
    for i, candidates in enumerate(batch.candidates):
        # Checked once a campaign, and not once a rule and level as the public functions must.
        places = family_indices(candidates, candidates.size, m, name="candidates")
        is_hit = labels if places is None else labels.take(places)
        row: dict[str, float] = {}
        for rule in rules:
            cuts = (cuts_p if rule == "naive" else cuts_log_e)(strengths[rule][i], levels, m)
            for q, cut in zip(levels, cuts, strict=True):
                declared = cut.positions.size
                true = int(np.count_nonzero(is_hit.take(cut.positions)))
                false = declared - true
                counts = [true, false, false / max(declared, 1)] + ([true / hits] if hits else [])
                row |= zip(names[rule, q], counts, strict=False)
        rows.append(row)
    return rows


def _strengths(
    batch: RecordBatch, certificate: Certificate, rules: Sequence[str], lam: float | None
) -> dict[str, NDArray[np.float64]]:
    """Log evidence of the observed candidates under each rule, or p-values of BH, shape (n, K)."""
    model = working_model(certificate.theta, certificate.s)
    strengths: dict[str, NDArray[np.float64]] = {}
    terms: dict[str, Increments] = {}
    if "cads" in rules and certificate.audit is None:
        terms["cads"] = capped_increments(model, certificate.log_cap)
    elif "cads" in rules:
        strengths["cads"] = certificate.log_evidence_batch(batch)
    if "uncapped" in rules:
        terms["uncapped"] = capped_increments(model, math.inf)
    if "zhou-liu" in rules and certificate.epsilon_bar == 0.0 and lam is None:
        # The default scale is 0 there, and such a read says nothing.
        strengths["zhou-liu"] = np.zeros(batch.candidates.shape)
    elif "zhou-liu" in rules:
        terms["zhou-liu"] = ZhouLiuIncrement(
            epsilon=certificate.epsilon_bar, s=certificate.s, lam=lam
        )
    if "naive" in rules:
        terms |= {"sum": _read_itself, "count": _one}
    size = batch.candidates.shape[1]
    # All sums over the reads in one go: a block of reads is checked and placed once.
    sums = sums_by_slot(batch.values, batch.slots, list(terms.values()), size=size)
    strengths |= zip(terms, sums, strict=True)
    if "naive" in rules:
        # Every candidate of a record was read.
        counts = strengths.pop("count")
        strengths["naive"] = z_test_p_values(strengths.pop("sum") / counts, counts, certificate.s)
    return strengths


def _read_itself(
    block: NDArray[np.float64], out: NDArray[np.float64], first: int
) -> NDArray[np.float64]:
    return block


def _one(block: NDArray[np.float64], out: NDArray[np.float64], first: int) -> NDArray[np.float64]:
    out.fill(1.0)
    return out
