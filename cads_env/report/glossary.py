"""The words that a report uses, with their meaning."""

from __future__ import annotations

from typing import Final

TERMS: Final[tuple[tuple[str, str], ...]] = (
    ("registry", "the fixed family of m candidates of one screen"),
    ("hit, null", "a candidate whose true effect counts, or does not; known to the scorer alone"),
    ("protocol", "all that can change a read: schedule, feedback, quota, channel"),
    ("campaign", "one registry and seed, played by one arm"),
    ("arm", "an agent with its settings under the protocol"),
    ("twin", "the same loop with the proposer removed, on the same registry, seed and noise"),
    ("read", "one noisy, possibly contaminated measurement of a candidate"),
    ("fresh slot", "a slot for a candidate that was not read before"),
    ("fallback", "the seeded, label-free draw that fills fresh slots left empty"),
    (
        "certified",
        "declared by e-BH over the complete registry, so that the expected share of nulls among "
        "the declared (FDR) is at most q",
    ),
    ("net", "certified hits of a campaign minus its twin's = gained - lost"),
    ("gained, lost, shared", "hits certified by the arm only, by the twin only, by both"),
    (
        "originated, displaced",
        "certified hits that the proposer named first; the twin's certified hits minus the arm's "
        "that the fallback drew first (may be negative)",
    ),
    (
        "reference",
        "proposes by the true effects; it knows the truth, so it is no agent but the yardstick",
    ),
    ("normalised net", "net / (reference - twin), a ratio of means; '-' below a range of 1"),
    ("reach", "the last round whose fresh candidates can still be certified"),
    (
        "e-value",
        "evidence against a null hypothesis; under the null its mean is at most 1, so 20 or more "
        "has a chance of at most 1 in 20, whenever one looks",
    ),
    (
        "beats its twin",
        "wins more campaigns than it loses; it says nothing of the size of the net",
    ),
    (
        "detectable",
        "2.80 standard errors, 2.80 sd / sqrt(n) over n seeds or registries: the true net found "
        "with 80 % power from about 30 of them; fewer find larger ones only, by the t law",
    ),
)
