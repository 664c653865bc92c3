"""A registry from a BioGRID ORCS screen file: one row a gene, with scores and a call of hits.

The index file, if given, says what was screened and what its scores mean. Rows without an official
symbol and repeated symbols are refused until an option says what to do with them; a gene without
the score that was asked for is left out and counted. Never guesses what a score means.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import RegistryError, suggest
from cads_env.registry import Oracle, Registry
from cads_env.registry_checks import listed
from cads_env.sources.columns import collect, measured, open_rows
from cads_env.sources.declared import (
    check_choice,
    check_number,
    check_signal,
    check_texts,
    file_of,
)
from cads_env.sources.delimited import TextTable, describe_columns, fact
from cads_env.sources.truth import check_declared, hits_text, judge, left_out, make_pair

Labels = NDArray[np.bool_]

SCORES: Final = tuple(f"SCORE.{i}" for i in range(1, 6))
DIRECTIONS: Final = ("lower", "higher", "both")

_SYMBOL, _KIND, _HIT, _SCREEN = "OFFICIAL_SYMBOL", "IDENTIFIER_TYPE", "HIT", "#SCREEN_ID"
_MISSING: Final = "-"
_CRITERION: Final = re.compile(
    r"\s*Score\.([1-5])\s*(?:\([^()]*\))?\s*([<>])=?\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*"
)
"""A criterion that is one comparison, such as `Score.1 (Bayes Factor) > 5`."""


@dataclass(frozen=True, kw_only=True)
class OrcsOptions:
    """What a user declares about an ORCS screen.

    Attributes:
        index: Path of the ORCS index file, or None. Gives the description, the meaning of scores
            and, where its hit criterion is one comparison of the chosen score, the direction.
        screen: Screen number; needed when the file holds several.
        score: Column of the score, "SCORE.1" to "SCORE.5"; None with `signal`.
        direction: "lower", "higher" or "both": which scores are hits. Needed with a score, unless
            the index gives it.
        threshold: Score beyond which u > 0. Needed with a score.
        label: "hit" (the column HIT decides; no other candidate may have u > 0) or "score" (the
            threshold decides and the column HIT is left aside).
        signal: (u of a hit > 0, u of a null <= 0): the column HIT alone, without a score.
        unknown: What becomes of rows of type UNKNOWN or without a symbol: None refuses them,
            "drop" leaves them out, "keep" keeps those with a name.
        duplicates: What becomes of repeated symbols: None refuses them, "drop" leaves all their
            rows out, "first" keeps the first row.
        description: What was screened and what a hit is, in words that a proposer reads; None for
            a plain sentence, from the index where it is given.
    """

    index: str | Path | None = None
    screen: str | int | None = None
    score: str | None = None
    direction: str | None = None
    threshold: float | None = None
    label: str = "hit"
    signal: Sequence[float] | None = None
    unknown: str | None = None
    duplicates: str | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        """Check types, ranges and contradictions."""
        check_texts(description=self.description)
        check_choice("score", self.score, SCORES, optional=True)
        check_choice("direction", self.direction, DIRECTIONS, optional=True)
        check_choice("label", self.label, ("hit", "score"), optional=False)
        check_choice("unknown", self.unknown, ("drop", "keep"), optional=True)
        check_choice("duplicates", self.duplicates, ("drop", "first"), optional=True)
        check_number("threshold", self.threshold)
        check_signal(self.signal)
        call = "the column HIT" if self.label == "hit" else None
        check_declared(threshold=self.threshold, signal=self.signal, side=self.direction, call=call)
        if self.signal is not None and self.score is not None:
            msg = (
                f"score={self.score!r} and signal={self.signal!r} exclude each other: u comes from "
                "the score or is one constant for hits and one for nulls. Leave one of them out."
            )
            raise RegistryError(msg)
        if self.signal is not None and self.direction is not None:
            msg = (
                f"direction={self.direction!r} is about a score, but signal={self.signal!r} takes "
                "hits as they are listed. Leave one of them out."
            )
            raise RegistryError(msg)


def load_orcs(
    source: str,
    *,
    name: str,
    path: str | Path | None = None,
    salt: bytes = b"",
    **options: Any,
) -> tuple[Registry, Oracle]:
    """A registry from an ORCS screen file.

    Hits are the genes with HIT = YES. u is `signal`, one constant for hits and one for nulls, or
    comes from a score: threshold - score (lower), score - threshold (higher), |score| - threshold
    (both). A null needs u <= 0: where scores of hits and nulls overlap, the message names the
    least threshold that no null passes.

    Args:
        source: Name of the source.
        name: What the registry is to be called; the panel in every random key.
        path: The file, BIOGRID-ORCS-SCREEN_...screen.tab.txt.
        salt: Secret of a private panel; changes the random streams.
        **options: See `OrcsOptions`.

    Raises:
        RegistryError: The file is no ORCS screen, a declaration is missing (the message says what
            scores there are) or the data is not usable.
    """
    declared = OrcsOptions(**options)
    file = file_of(source, "path", path, "a BIOGRID-ORCS-SCREEN_...screen.tab.txt file")
    table = _one_screen(_read_screen(file), declared)
    about = _about(table, source, declared)
    declared = _with_direction(declared, about)
    table, counts = _cleaned(table, declared)
    called = _called(table)
    _check_complete(table, called, declared, about)
    effects = None
    if declared.score is not None:
        effects = measured(table, declared.score, "score")
        there = ~np.isnan(effects)
        counts["genes without that score"] = int(np.count_nonzero(~there))
        table, called, effects = table.keep(there.tolist()), called[there], effects[there]
    truth = judge(
        effects,
        side=declared.direction or "higher",
        threshold=declared.threshold,
        called=called if declared.label == "hit" else None,
        signal=declared.signal,
        identifiers=table.columns[_SYMBOL],
        what=declared.score or _HIT,
    )
    return make_pair(
        truth,
        name=name,
        salt=salt,
        identifiers=table.columns[_SYMBOL],
        description=left_out(
            declared.description or _description(declared, about, len(called)), counts
        ),
    )


def screens_of(*, path: str | Path | None = None, **options: Any) -> tuple[str, ...]:
    """The number of every screen of a file, in its order.

    Args:
        path: The file.
        **options: Ignored.

    Raises:
        RegistryError: The file is no ORCS screen.
    """
    del options
    file = file_of("orcs", "path", path, "a BIOGRID-ORCS-SCREEN_...screen.tab.txt file")
    return tuple(dict.fromkeys(_read_screen(file).columns[_SCREEN]))


def _read_screen(path: Path) -> TextTable:
    with open_rows(path, sep="\t", is_quoted=False) as stream:
        header = stream.header
        if header[0] == _SCREEN and "SCORE.1_TYPE" in header:
            msg = (
                f"{path} is the ORCS index, one row a screen, not a screen. Give a "
                "...screen.tab.txt file as path, and this one as index=...."
            )
            raise RegistryError(msg)
        absent = [name for name in (_SCREEN, _KIND, _SYMBOL, _HIT) if name not in header]
        if absent:
            msg = (
                f"{path} is no ORCS screen file: it has no column {', '.join(map(repr, absent))}. "
                f"{describe_columns(header)}"
            )
            raise RegistryError(msg)
        table = collect(stream, (_SCREEN, _KIND, _SYMBOL, _HIT, *SCORES))
    for column, values in table.columns.items():
        table.columns[column] = ["" if value == _MISSING else value for value in values]
    return table


def _one_screen(table: TextTable, options: OrcsOptions) -> TextTable:
    """The rows of the chosen screen."""
    screens = sorted(set(table.columns[_SCREEN]))
    if options.screen is None:
        if len(screens) > 1:
            msg = (
                f"{table.path} holds {len(screens)} screens; say which with screen=.... "
                f"Available: {listed(screens)}."
            )
            raise RegistryError(msg)
        return table
    chosen = str(options.screen)
    if chosen not in screens:
        msg = f"{table.path} has no screen {chosen!r}. {suggest(chosen, screens)}"
        raise RegistryError(msg)
    return table.keep([value == chosen for value in table.columns[_SCREEN]])


def _about(table: TextTable, source: str, options: OrcsOptions) -> dict[str, str]:
    """What the index says about the screen, by column and without missing values."""
    if options.index is None:
        return {}
    path = file_of(source, "index", options.index, "the ORCS index file")
    screens = table.columns[_SCREEN]
    with open_rows(path, sep="\t", is_quoted=False) as stream:
        if stream.header[0] != _SCREEN or "SCORE.1_TYPE" not in stream.header:
            msg = (
                f"{path} (index=) is no ORCS index: expected columns #SCREEN_ID and SCORE.1_TYPE. "
                f"{describe_columns(stream.header)}"
            )
            raise RegistryError(msg)
        for _, fields in stream.rows:
            if screens and fields[0].strip() == screens[0]:
                row = zip(stream.header, map(str.strip, fields), strict=True)
                return {key: fact(value) for key, value in row if value not in ("", _MISSING)}
    msg = (
        f"{path} (index=) has no row for the screen {listed(screens[:1])} of {table.path}. Give "
        "the index of the same ORCS release, or leave index out."
    )
    raise RegistryError(msg)


def _with_direction(options: OrcsOptions, about: dict[str, str]) -> OrcsOptions:
    """The options with the direction of the index's criterion, where the user gave none."""
    match = _CRITERION.fullmatch(about.get("SIGNIFICANCE_CRITERIA", ""))
    is_open = options.direction is None and options.score is not None
    if not is_open or match is None or options.score != f"SCORE.{match[1]}":
        return options
    return replace(options, direction="lower" if match[2] == "<" else "higher")


def _cleaned(table: TextTable, options: OrcsOptions) -> tuple[TextTable, dict[str, int]]:
    """The rows with unique names, and how many were left out."""
    symbols, kinds = table.columns[_SYMBOL], table.columns[_KIND]
    is_unknown = [
        not symbol or (kind == "UNKNOWN" and options.unknown != "keep")
        for symbol, kind in zip(symbols, kinds, strict=True)
    ]
    at = [i for i, bad in enumerate(is_unknown) if bad]
    if at and options.unknown is None:
        msg = (
            f"{table.path}: {len(at)} rows are of identifier type UNKNOWN or have no official "
            f"symbol: {table.offenders(at, symbols)}. Say unknown=drop to leave them out, or "
            "unknown=keep to keep those with a name."
        )
        raise RegistryError(msg)
    table = table.keep([not bad for bad in is_unknown])
    symbols = table.columns[_SYMBOL]
    repeated = [symbol for symbol, count in Counter(symbols).items() if count > 1]
    if repeated and options.duplicates is None:
        msg = (
            f"{table.path}: {len(repeated)} official symbols have several rows: "
            f"{listed(repeated)}. Say duplicates=first to keep the first row of each, or "
            "duplicates=drop to leave them out."
        )
        raise RegistryError(msg)
    many, seen = set(repeated), set()
    kept = []
    for symbol in symbols:
        first = options.duplicates == "first" and symbol not in seen
        kept.append(symbol not in many or first)
        seen.add(symbol)
    counts = {
        "rows of unknown identifiers": len(at),
        "rows of repeated symbols": kept.count(False),
    }
    return table.keep(kept), counts


def _called(table: TextTable) -> Labels:
    texts = table.columns[_HIT]
    bad = [i for i, text in enumerate(texts) if text not in ("YES", "NO")]
    if bad:
        msg = (
            f"{table.path}: {len(bad)} entries of the column HIT are neither YES nor NO: "
            f"{table.offenders(bad, texts)}. Mend or remove those rows."
        )
        raise RegistryError(msg)
    return np.array([text == "YES" for text in texts], np.bool_)


def _check_complete(
    table: TextTable, called: Labels, options: OrcsOptions, about: dict[str, str]
) -> None:
    """Raise, with the options to add and what the file offers, when a declaration is missing."""
    if options.score is None and options.signal is not None:
        return
    missing: list[str] = []
    if options.score is None:
        missing.append(
            "signal=(1.0, -0.5) (hits as listed, one u for hits and one for nulls), or score=..."
            " with direction=... and threshold=... (u from a score)"
        )
    else:
        if options.direction is None:
            missing.append("direction=higher, lower or both (which scores are hits)")
        if options.threshold is None:
            missing.append("threshold=... (the score beyond which u > 0)")
    if not missing:
        return
    facts = [f"HIT: {int(called.sum()):,} of {called.size:,} are YES."]
    for score in (options.score,) if options.score is not None else SCORES:
        if score not in table.columns:
            continue
        values = measured(table, score, "score")
        count = int(np.count_nonzero(~np.isnan(values)))
        if count:
            kind = about.get(f"{score}_TYPE", "its meaning stands in the index file, index=...")
            facts.append(f"{score}: {kind}, {count:,} values.")
            if options.score is not None:
                sides = [options.direction] if options.direction else ["lower", "higher"]
                facts.append(hits_text(values, score, sides))
    if "SIGNIFICANCE_CRITERIA" in about:
        facts.append(f"The index's criterion of a hit: {about['SIGNIFICANCE_CRITERIA']!r}.")
    msg = (
        f"{table.path} is an ORCS screen; still to be declared: {'; '.join(missing)}. "
        f"{' '.join(facts)}"
    )
    raise RegistryError(msg)


def _description(options: OrcsOptions, about: dict[str, str], m: int) -> str:
    words = [f"A published CRISPR screen of {m:,} genes from BioGRID ORCS."]
    for title, columns in (
        ("Phenotype", ("PHENOTYPE",)),
        ("Cells", ("CELL_LINE", "CELL_TYPE")),
        ("Condition", ("CONDITION_NAME", "CONDITION_DOSAGE")),
        ("Design", ("SCREEN_TYPE", "SCREEN_FORMAT", "LIBRARY_TYPE", "LIBRARY", "DURATION")),
    ):
        values = [about[column] for column in columns if column in about]
        if values:
            words.append(f"{title}: {', '.join(values)}.")
    if options.label == "score":
        side = {"lower": "below", "higher": "above", "both": "beyond, in magnitude,"}
        kind = about.get(f"{options.score}_TYPE", str(options.score))
        words.append(
            f"A hit is a gene with a score ({kind}) {side[str(options.direction)]} "
            f"{options.threshold:g}."
        )
    else:
        rule = about.get("SIGNIFICANCE_CRITERIA")
        words.append(f"A hit is a gene that its authors call one{f' ({rule})' if rule else ''}.")
    return " ".join(words)
