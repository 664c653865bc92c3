"""The certificate and its comparators on the same records, at several levels at once.

Each rule judges the same reads over the complete family; evidence is accumulated once a rule and
serves every level. Never plays a campaign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cads_env.certificate import Certificate, bh, e_bh
from cads_env.certificate.comparators import naive_p_values
from cads_env.certificate.zhou_liu import zhou_liu_log_evidence
from cads_env.record import RecordBatch

RULES: Final = ("cads", "naive", "uncapped", "zhou-liu")
"""The capped certificate; BH on z-test p-values; e-BH on the uncapped likelihood ratio; e-BH on
Zhou-Liu evidence."""

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
    rows: list[dict[str, float]] = [{} for _ in range(len(batch))]
    hits = int(labels.sum())
    for rule in rules:
        strength = _strength(rule, batch, certificate, lam)
        for i, row in enumerate(rows):
            for q in qs:
                if rule == "naive":
                    found = bh(strength[i], q, m=batch.m, indices=batch.candidates[i])
                else:
                    found = e_bh(strength[i], q, m=batch.m, indices=batch.candidates[i])
                true = int(np.count_nonzero(labels[found]))
                false = found.size - true
                row[column(rule, q, "true")] = true
                row[column(rule, q, "false")] = false
                row[column(rule, q, "fdp")] = false / max(found.size, 1)
                if hits:
                    row[column(rule, q, "power")] = true / hits
    return rows


def _strength(
    rule: str, batch: RecordBatch, certificate: Certificate, lam: float | None
) -> NDArray[np.float64]:
    """Log evidence of the observed candidates under a rule, or p-values of BH, shape (n, K)."""
    if rule == "naive":
        rows = [naive_p_values(r.means, r.counts, s=certificate.s) for r in batch]
        return np.array(rows)
    if rule == "cads":
        return certificate.log_evidence_batch(batch)
    if rule == "uncapped":
        free = Certificate(epsilon_bar=0.0, theta=certificate.theta, s=certificate.s)
        return free.log_evidence_batch(batch)
    if certificate.epsilon_bar == 0.0 and lam is None:
        # The default scale is 0 there, and such a read says nothing.
        return np.zeros(batch.candidates.shape)
    return zhou_liu_log_evidence(
        batch.values,
        batch.slots,
        size=batch.candidates.shape[1],
        epsilon=certificate.epsilon_bar,
        s=certificate.s,
        lam=lam,
    )
