"""A registry from Perturb-seq differential expression: the genes that one perturbation moves.

Reads a long table (one row a perturbation, condition and gene) or an h5ad file (one row a
perturbation and condition, one layer a statistic), one row at a time. Genes without the values that
decide, and the perturbed gene itself, are left out and counted. Never holds a whole file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cads_env.errors import RegistryError
from cads_env.registry import Oracle, Registry
from cads_env.registry_checks import listed
from cads_env.sources.contrasts import (
    ADJUSTED,
    EFFECTS,
    GENE_ID,
    Contrast,
    contrasts_of_long,
    read_long,
)
from cads_env.sources.declared import (
    check_choice,
    check_flag,
    check_fraction,
    check_number,
    check_signal,
    check_texts,
    file_of,
)
from cads_env.sources.delimited import fact
from cads_env.sources.h5ad import contrasts_of, read_contrast
from cads_env.sources.truth import (
    SIDES,
    check_declared,
    hits_text,
    judge,
    left_out,
    make_pair,
)


@dataclass(frozen=True, kw_only=True)
class PerturbseqOptions:
    """What a user declares about a differential expression file.

    Attributes:
        target: The perturbed gene; needed when the file holds several.
        condition: The culture condition; needed when the target has several.
        effect: "log_fc" or "zscore". Needed.
        direction: "both" (|effect| beyond the threshold), "lower" or "higher".
        threshold: Effect beyond which u > 0; a magnitude with "both".
        adj_p: Makes hits of the genes whose adjusted p value is below this, above 0 and at most 1;
            None to let the threshold make them. With it, u comes from the threshold or `signal`.
        signal: (u of a hit > 0, u of a null <= 0); only with `adj_p`, instead of a threshold.
        identifiers: "symbol" or "id": what candidates are called.
        drop_target: Leave the perturbed gene out: that it goes down is the perturbation itself.
        description: What was screened and what a hit is, in words that a proposer reads; None for
            a plain sentence.
    """

    target: str | None = None
    condition: str | None = None
    effect: str | None = None
    direction: str = "both"
    threshold: float | None = None
    adj_p: float | None = None
    signal: Sequence[float] | None = None
    identifiers: str = "symbol"
    drop_target: bool = True
    description: str | None = None

    def __post_init__(self) -> None:
        """Check types, ranges and contradictions."""
        check_texts(target=self.target, condition=self.condition, description=self.description)
        check_choice("effect", self.effect, EFFECTS, optional=True)
        check_choice("direction", self.direction, SIDES, optional=False)
        check_choice("identifiers", self.identifiers, ("symbol", "id"), optional=False)
        check_number("threshold", self.threshold)
        check_fraction("adj_p", self.adj_p)
        check_signal(self.signal)
        check_flag("drop_target", self.drop_target)
        call = None if self.adj_p is None else f"adj_p={self.adj_p:g}"
        check_declared(threshold=self.threshold, signal=self.signal, side=self.direction, call=call)


def load_perturbseq(
    source: str,
    *,
    name: str,
    path: str | Path | None = None,
    salt: bytes = b"",
    **options: Any,
) -> tuple[Registry, Oracle]:
    """A registry of the genes that one perturbation may move.

    u = |effect| - threshold (both), threshold - effect (lower) or effect - threshold (higher). A
    gene is a hit when u > 0 or, with `adj_p`, when its adjusted p value is below it (and its effect
    on the declared side of 0).

    Args:
        source: Name of the source.
        name: What the registry is to be called; the panel in every random key.
        path: A long table (.csv, .tsv or .txt) or an h5ad file.
        salt: Secret of a private panel; changes the random streams.
        **options: See `PerturbseqOptions`.

    Raises:
        RegistryError: The file is of another kind, a declaration is missing (the message says what
            there is) or the data is not usable.
        MissingExtraError: The file is h5ad and the package h5py is missing.
    """
    declared = PerturbseqOptions(**options)
    file = file_of(source, "path", path, "a table of differential expression or an h5ad file")
    effect = declared.effect or EFFECTS[0]
    wants_p = declared.adj_p is not None or declared.threshold is None
    if file.suffix.lower() == ".h5ad":
        contrast = read_contrast(
            file,
            target=declared.target,
            condition=declared.condition,
            effect=effect,
            wants_adjusted=wants_p,
        )
    else:
        contrast = read_long(
            file,
            target=declared.target,
            condition=declared.condition,
            effect=effect,
            wants_adjusted=wants_p,
            needs_adjusted=declared.adj_p is not None,
        )
    _check_complete(file, contrast, declared)
    identifiers = _identifiers(file, contrast, declared)
    effects, adjusted = contrast.effects, contrast.adjusted
    there = ~np.isnan(effects)
    if declared.adj_p is not None and adjusted is not None:
        there &= ~np.isnan(adjusted)
    is_target = np.array([symbol == contrast.target for symbol in contrast.symbols], np.bool_)
    is_target &= declared.drop_target
    kept = there & ~is_target
    called = None
    if declared.adj_p is not None and adjusted is not None:
        on_side = {"both": effects == effects, "lower": effects < 0, "higher": effects > 0}
        called = ((adjusted < declared.adj_p) & on_side[declared.direction])[kept]
    kept_names = [x for x, is_kept in zip(identifiers, kept, strict=True) if is_kept]
    truth = judge(
        effects[kept],
        side=declared.direction,
        threshold=declared.threshold,
        called=called,
        signal=declared.signal,
        identifiers=kept_names,
        what=effect,
    )
    description = left_out(
        declared.description or _description(contrast, declared, len(kept_names)),
        {"genes without the values that decide": int(np.count_nonzero(~there & ~is_target))},
    )
    if is_target.any():
        description += " The perturbed gene itself is no candidate."
    return make_pair(truth, name=name, salt=salt, identifiers=kept_names, description=description)


def targets_of(*, path: str | Path | None = None, **options: Any) -> tuple[str, ...]:
    """Every perturbed gene of a file, in its order.

    Args:
        path: The file.
        **options: `condition` keeps the genes perturbed in it; the rest is ignored.

    Raises:
        RegistryError: The file is of another kind.
    """
    file = file_of("perturbseq", "path", path, "a table of differential expression or an h5ad file")
    pairs = contrasts_of(file) if file.suffix.lower() == ".h5ad" else contrasts_of_long(file)
    wanted = options.get("condition")
    return tuple(dict.fromkeys(t for t, c in pairs if wanted is None or c == wanted))


def _check_complete(path: Path, contrast: Contrast, options: PerturbseqOptions) -> None:
    """Raise, with the options to add and what they would give, when a declaration is missing."""
    missing: list[str] = []
    if options.effect is None:
        missing.append("effect=log_fc or effect=zscore (from which u is made)")
    if options.threshold is None and options.adj_p is None:
        missing.append(
            "threshold=... (hits are genes with |effect| beyond it; direction=lower or higher for "
            "one side), or adj_p=0.05 with signal=(1.0, -0.5)"
        )
    elif options.threshold is None and options.signal is None:
        missing.append(
            "signal=(1.0, -0.5) (one u for hits, one for nulls), or threshold=... (the effect "
            "beyond which u > 0; no null may pass it)"
        )
    if not missing:
        return
    facts = [hits_text(contrast.effects, options.effect or EFFECTS[0], [options.direction])]
    if contrast.adjusted is not None:
        count = int(np.count_nonzero(contrast.adjusted < 0.05))
        facts.append(f"{ADJUSTED} < 0.05: {count:,}.")
    msg = (
        f"{path}: of {contrast.target} in {contrast.condition}, still to be declared: "
        f"{'; '.join(missing)}. {' '.join(facts)}"
    )
    raise RegistryError(msg)


def _identifiers(path: Path, contrast: Contrast, options: PerturbseqOptions) -> list[str]:
    if options.identifiers == "id":
        if not contrast.ids:
            msg = f"{path} has no gene ids ({GENE_ID}); say identifiers=symbol."
            raise RegistryError(msg)
        names = contrast.ids
    else:
        names = contrast.symbols
    seen: set[str] = set()
    repeated = []
    for x in names:
        if x in seen:
            repeated.append(x)
        seen.add(x)
    if repeated:
        other = "id" if options.identifiers == "symbol" else "symbol"
        msg = (
            f"{path}: {len(repeated)} genes repeat the {options.identifiers} of another one: "
            f"{listed(repeated)}. Say identifiers={other}, or name them apart."
        )
        raise RegistryError(msg)
    return names


def _description(contrast: Contrast, options: PerturbseqOptions, m: int) -> str:
    what = {"log_fc": "log2 fold change", "zscore": "z score"}[str(options.effect)]
    side = {"both": "beyond {} in magnitude", "lower": "below {}", "higher": "above {}"}
    if options.adj_p is None:
        rule = f"a {what} {side[options.direction].format(f'{options.threshold:g}')}"
    else:
        rule = f"an adjusted p value below {options.adj_p:g}"
        if options.direction != "both":
            rule += f" and a {what} {side[options.direction].format('0')}"
    return (
        f"A Perturb-seq contrast of {m:,} genes: how the expression of each changes when "
        f"{fact(contrast.target)} is perturbed, in the condition {fact(contrast.condition)}. A hit "
        f"is a gene with {rule}."
    )
