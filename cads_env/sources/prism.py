"""A registry from a PRISM Repurposing file: the compounds of one screened cell line.

Reads the primary screen in both published orientations and the secondary screen's dose-response
parameters. In each of them lower means a stronger kill, so hits lie below the threshold. Compounds
without a value are left out and counted in the description. Never holds a whole matrix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from cads_env.errors import RegistryError, suggest
from cads_env.registry import Oracle, Registry
from cads_env.registry_checks import listed
from cads_env.sources.compounds import Compounds, read_compounds, side_tables
from cads_env.sources.declared import (
    check_choice,
    check_flag,
    check_list,
    check_number,
    check_texts,
    file_of,
)
from cads_env.sources.prism_files import MEASURES, Wells, read_line
from cads_env.sources.truth import hits_text, judge, left_out, make_pair

_UNITS: Final = {
    "lfc": "log2 fold change of the line's barcode against DMSO (0: no effect; lower: killed)",
    "auc": "area under the dose-response curve (about 1: no effect; lower: killed)",
    "ic50": "half-maximal inhibitory concentration in micromolar (lower: killed by less)",
    "ec50": "half-maximal effective concentration in micromolar (lower: acts at less)",
}


@dataclass(frozen=True, kw_only=True)
class PrismOptions:
    """What a user declares about a PRISM file.

    Attributes:
        line: DepMap id of the cell line, such as "ACH-000446". Needed.
        measure: "auc", "ic50" or "ec50": which column of the secondary screen. Needed there, and
            not allowed for the primary screen. An empty ic50 means that the curve never reached
            half: such compounds, which are no hits, are left out.
        threshold: Value below which a compound is a hit. Needed.
        screen: A screen (`HTS`, `MTS010`), or several in order of preference, for files in which a
            compound was screened more than once; compounds of no named screen are left out.
        compounds: Path of the compound list, or None. Gives names, mechanisms and targets.
        names: "drug" (a drug's name where it is known and unique, else the BRD id) or "id".
        annotations: Publish mechanism and target, where known, as the side tables moa and target.
        description: What was screened and what a hit is, in words that a proposer reads; None for
            a plain sentence.
    """

    line: str | None = None
    measure: str | None = None
    threshold: float | None = None
    screen: str | Sequence[str] | None = None
    compounds: str | Path | None = None
    names: str = "drug"
    annotations: bool = True
    description: str | None = None

    def __post_init__(self) -> None:
        """Check types and ranges."""
        check_texts(line=self.line, description=self.description)
        check_choice("measure", self.measure, MEASURES, optional=True)
        check_choice("names", self.names, ("drug", "id"), optional=False)
        check_flag("annotations", self.annotations)
        check_number("threshold", self.threshold)
        if self.screen is not None and not isinstance(self.screen, str):
            check_list("screen", self.screen, "screens")

    @property
    def screens(self) -> tuple[str, ...] | None:
        """The screens in order of preference; None for any."""
        if self.screen is None:
            return None
        return (self.screen,) if isinstance(self.screen, str) else tuple(self.screen)


def load_prism(
    source: str,
    *,
    name: str,
    path: str | Path | None = None,
    salt: bytes = b"",
    **options: Any,
) -> tuple[Registry, Oracle]:
    """A registry of compounds on one cell line; u = threshold - value.

    Args:
        source: Name of the source.
        name: What the registry is to be called; the panel in every random key.
        path: The file.
        salt: Secret of a private panel; changes the random streams.
        **options: See `PrismOptions`.

    Raises:
        RegistryError: The file is no PRISM file, the line is not in it (the message names the
            nearest), a declaration is missing or the data is not usable.
    """
    declared = PrismOptions(**options)
    file = file_of(source, "path", path, "a PRISM matrix or dose-response table (.csv)")
    wells = read_line(file, line=declared.line, measure=declared.measure)
    if declared.threshold is None:
        what = declared.measure or "lfc"
        msg = (
            f"{file}: still to be declared: threshold=... (compounds whose {what} is below it are "
            f"hits: in PRISM lower means killed). {hits_text(wells.values, what, ['lower'])}"
        )
        raise RegistryError(msg)
    counts: dict[str, int] = {}
    wells = _of_screens(wells, declared, counts)
    there = ~np.isnan(wells.values)
    counts["compounds without a value on this line"] = int(np.count_nonzero(~there))
    ids = [x for x, is_there in zip(wells.ids, there, strict=True) if is_there]
    about = wells.compounds
    if declared.compounds is not None:
        about = read_compounds(
            file_of(source, "compounds", declared.compounds, "the compound list")
        )
        _check_overlap(ids, about, str(declared.compounds))
    identifiers = about.identifiers(ids) if declared.names == "drug" else tuple(ids)
    what = declared.measure or "lfc"
    effects = wells.values[there]
    truth = judge(
        effects, side="lower", threshold=declared.threshold, identifiers=identifiers, what=what
    )
    description = declared.description or (
        f"A PRISM screen of {len(ids):,} compounds on the cell line {declared.line}. A hit is a "
        f"compound whose {what} is below {declared.threshold:g}: {_UNITS[what]}."
    )
    return make_pair(
        truth,
        name=name,
        salt=salt,
        identifiers=identifiers,
        description=left_out(description, counts),
        side_tables=side_tables(about, ids) if declared.annotations else {},
        advice="Say annotations=false.",
    )


def _of_screens(wells: Wells, options: PrismOptions, counts: dict[str, int]) -> Wells:
    """The values with one a compound, of the preferred screen."""
    ids, screens = wells.ids, wells.screens
    available = sorted({screen for screen in screens if screen})
    chosen = options.screens
    if chosen is not None:
        for screen in chosen:
            if screen not in available:
                has = suggest(screen, available) if available else "The file names no screens."
                msg = f"{wells.path} has no screen {screen!r} for this line. {has}"
                raise RegistryError(msg)
        rank = {screen: i for i, screen in reversed(list(enumerate(chosen)))}
        best: dict[str, int] = {}
        for x, screen in zip(ids, screens, strict=True):
            if screen in rank:
                best[x] = min(best.get(x, len(rank)), rank[screen])
        kept = [
            i for i, (x, s) in enumerate(zip(ids, screens, strict=True))
            if x in best and rank.get(s) == best[x]
        ]  # fmt: skip
        counts["compounds of other screens"] = len(set(ids) - set(best))
        wells = Wells(
            wells.path, [ids[i] for i in kept], [screens[i] for i in kept], wells.values[kept],
            wells.compounds,
        )  # fmt: skip
    repeated = [x for x, count in Counter(wells.ids).items() if count > 1]
    if repeated:
        where: dict[str, list[str]] = {x: [] for x in repeated[:5]}
        for x, screen in zip(wells.ids, wells.screens, strict=True):
            if x in where and screen:
                where[x].append(screen)
        shown = [f"{x} ({', '.join(names)})" if names else x for x, names in where.items()]
        fix = (
            f"Say screen=... with one of {', '.join(available)}, or with several in order of "
            f"preference: screen=[{', '.join(available)}]."
            if len(available) > 1 and (chosen is None or len(chosen) < len(available))
            else "Remove all but one value of each."
        )
        msg = (
            f"{wells.path}: {len(repeated)} compounds have several values on this line: "
            f"{', '.join(shown)}. {fix}"
        )
        raise RegistryError(msg)
    return wells


def _check_overlap(ids: Sequence[str], about: Compounds, path: str) -> None:
    """A list of another release names other compounds: with none in common it is the wrong one."""
    if not any(x in about.names for x in ids):
        msg = (
            f"{path} (compounds=) has none of the {len(ids)} compounds of the screen, such as "
            f"{listed(ids[:2])}. Give the compound list of the same release."
        )
        raise RegistryError(msg)
