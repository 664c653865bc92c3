"""The seven checks: what each claims of the scores, and what it says in one sentence.

Rules only: scores come in, claims and sentences go out. Plays nothing and prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cads_env.selfcheck.claims import Claim
from cads_env.selfcheck.draft import Draft
from cads_env.selfcheck.play import Scores
from cads_env.selfcheck.scenes import (
    EVAL,
    LADDER,
    LEARNER,
    MEMORISER,
    OWN,
    PERFECT,
    PERMUTED,
    RANDOM,
    REVERSE,
    SHUFFLED,
    Cell,
    Stage,
    noise_name,
    start_name,
)

QUALITY: Final = "quality ladder"
LATE: Final = "late starters"
POSITIVE: Final = "positive control"
NEGATIVE: Final = "negative control"
HARMFUL: Final = "harmful control"
MEMORY: Final = "memoriser"
SURFACE: Final = "feedback and names"


def drafts_of(stage: Stage, scores: Mapping[str, Scores], left_out: Mapping[str, str],
              because_late: str) -> list[Draft]:  # fmt: skip
    """Every check of a self-check, in the order in which they are told.

    Args:
        stage: What was played.
        scores: The scores of each scene.
        left_out: Agents that were not played, and why.
        because_late: A sentence on the reach, told when late starters lose.
    """
    return [
        _quality(stage, scores[LADDER]),
        _late(stage, scores[LADDER], because_late),
        _positive(stage, scores),
        _negative(stage, scores[SHUFFLED], left_out),
        _harmful(stage, scores[LADDER]),
        _memory(stage, scores),
        _surface(stage, scores),
    ]


def _quality(stage: Stage, ladder: Scores) -> Draft:
    names = [noise_name(sd) for sd in stage.settings.ladder.noise]
    top = Claim(
        name=f"{PERFECT} less {RANDOM}",
        kind="above",
        bound=stage.settings.margin,
        values=ladder.true(PERFECT) - ladder.true(RANDOM),
        groups=ladder.positions,
    )
    return Draft(
        name=QUALITY,
        asks="The net does not fall as the ranking gets better, and perfect is well above random.",
        holds=lambda rows: (
            f"No ranking of {len(names)} is shown to fall behind a worse one; perfect is "
            f"{rows[0].mean:.1f} above random."
        ),
        # Every pair, not the neighbours alone: small steps down add up.
        claims=(
            top,
            *_never_beaten(
                ladder,
                (pair for pair in combinations(names, 2) if pair != (PERFECT, RANDOM)),
                stage.settings.tolerance,
            ),
        ),
    )


def _late(stage: Stage, ladder: Scores, because: str) -> Draft:
    starts = stage.settings.ladder.starts(stage.protocol.rounds)
    names = [start_name(start) for start in starts]
    nets = tuple(
        Claim(
            name=f"{name}, net",
            kind="not below",
            bound=-stage.settings.tolerance,
            values=ladder.net(name),
            groups=ladder.positions,
        )
        for name in names
    )
    return Draft(
        name=LATE,
        asks="Good picks never harm however late they come, and earlier is never worse.",
        holds=lambda rows: (
            f"Perfect ranking from round {starts[0]} nets {rows[0].mean:+.1f}, from round "
            f"{starts[-1]} {rows[len(starts) - 1].mean:+.1f}; none is below the twin."
        ),
        claims=(
            *nets,
            *_never_beaten(ladder, pairwise([PERFECT, *names]), stage.settings.tolerance),
        ),
        inapplicable="" if starts else "the protocol has one round",
        because=because,
    )


def _never_beaten(
    ladder: Scores, pairs: Iterable[tuple[str, str]], tolerance: float
) -> tuple[Claim, ...]:
    """That of each pair the first, better ranking is not beaten by the second."""
    return tuple(
        Claim(
            name=f"{better} less {worse}",
            kind="not below",
            bound=-tolerance,
            values=ladder.true(better) - ladder.true(worse),
            groups=ladder.positions,
        )
        for better, worse in pairs
    )


def _positive(stage: Stage, scores: Mapping[str, Scores]) -> Draft:
    surface = stage.settings.surface
    claims = []
    if stage.cells:
        for structure, kind in ((0.0, "zero"), (surface.positive_structure, "above")):
            found = scores[Cell(structure=structure, name_information=0.0).scene]
            claims.append(
                Claim(
                    name=f"{surface.learner} at structure {structure:g}, net",
                    kind="zero" if kind == "zero" else "above",
                    values=found.net(LEARNER),
                    groups=found.positions,
                )
            )
    return Draft(
        name=POSITIVE,
        asks="An agent that learns nets more than its twin where there is something to learn, and "
        "nothing where there is not.",
        holds=lambda rows: (
            f"{surface.learner} nets {rows[1].mean:+.1f} with structure and {rows[0].mean:+.1f} "
            "without."
        ),
        claims=tuple(claims),
        inapplicable=stage.without_cells,
    )


def _negative(stage: Stage, shuffled: Scores, left_out: Mapping[str, str]) -> Draft:
    names = [arm.name for arm in shuffled.scene.arms]
    failed = {name: shuffled.failure(name) for name in names if shuffled.failure(name)}
    notes = [f"{name} left out: {reason}" for name, reason in {**left_out, **failed}.items()]
    played = [name for name in names if name not in failed]
    return Draft(
        name=NEGATIVE,
        asks="Under shuffled names no agent nets anything.",
        holds=lambda rows: (
            f"{', '.join(row.name for row in rows)}: all 0 under shuffled names, the largest "
            f"{max(rows, key=lambda row: abs(row.mean)).mean:+.2f}."
        ),
        claims=tuple(
            Claim(name=name, kind="zero", values=shuffled.net(name), groups=shuffled.positions)
            for name in played
        ),
        notes=tuple(notes),
    )


def _harmful(stage: Stage, ladder: Scores) -> Draft:
    return Draft(
        name=HARMFUL,
        asks="An agent that proposes the surest nulls never comes out ahead.",
        holds=lambda rows: f"The {REVERSE} nets {rows[0].mean:+.2f}.",
        claims=(
            Claim(
                name=f"{REVERSE}, net",
                kind="not above",
                bound=stage.settings.tolerance,
                values=ladder.net(REVERSE),
                groups=ladder.positions,
            ),
        ),
    )


def _memory(stage: Stage, scores: Mapping[str, Scores]) -> Draft:
    own = scores[OWN]
    claims = [
        Claim(
            name=f"{MEMORISER} on the registry it knows, net",
            kind="above",
            values=own.net(MEMORISER),
            groups=own.positions,
        )
    ]
    notes: tuple[str, ...] = ()
    if stage.evaluation is None:
        notes = (f"{MEMORISER}: no registries that it does not know, since {stage.without_splits}",)
    else:
        fresh = scores[EVAL]
        claims.append(
            Claim(
                name=f"{MEMORISER} on eval, net",
                kind="zero",
                values=fresh.net(MEMORISER),
                groups=fresh.positions,
            )
        )
    return Draft(
        name=MEMORY,
        asks="A list of earlier declarations pays on the registry it comes from, and on no other.",
        holds=lambda rows: (
            f"It nets {rows[0].mean:+.1f} on the registry it knows"
            + (f" and {rows[1].mean:+.2f} on eval." if len(rows) > 1 else ".")
        ),
        claims=tuple(claims),
        notes=notes,
    )


def surface_values(
    scores: Mapping[str, Scores], cell: Cell
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What feedback and names are worth in a cell, one number a campaign each.

    Args:
        scores: The scores of each scene.
        cell: The cell.

    Returns:
        The learner's declared hits under full less permuted proposer feedback (re-selection sees
        the true reads in both), and the memoriser's net; shape (n,) each.
    """
    found = scores[cell.scene]
    return found.true(LEARNER) - found.true(PERMUTED), found.net(MEMORISER)


def _surface(stage: Stage, scores: Mapping[str, Scores]) -> Draft:
    holds = "Feedback gains {:+.1f} with structure, a memorised list {:+.1f} with names that tell."
    draft = Draft(
        name=SURFACE,
        asks="Feedback is worth more the more structure there is, a memorised list the more names "
        "tell; both nothing where there is nothing.",
        holds=lambda rows: holds.format(
            next(row.mean for row in rows if row.name == _top("feedback", surface.structure)),
            next(row.mean for row in rows if row.name == _top("names", surface.name_information)),
        ),
        inapplicable=stage.without_cells,
    )
    surface = stage.settings.surface
    if not stage.cells:
        return draft
    values = {cell: surface_values(scores, cell) for cell in stage.cells}
    groups = scores[next(iter(stage.cells)).scene].positions
    # Each axis averages over the other, campaign by campaign.
    feedback = {
        s: np.mean([v[0] for cell, v in values.items() if cell.structure == s], axis=0)
        for s in surface.structure
    }
    names = {
        s: np.mean([v[1] for cell, v in values.items() if cell.name_information == s], axis=0)
        for s in surface.name_information
    }
    nothing = values[Cell(structure=0.0, name_information=0.0)][0]
    claims = [
        Claim(name="feedback at structure 0, names 0", kind="zero", values=nothing, groups=groups),
        Claim(name="names at 0", kind="zero", values=names[0.0], groups=groups),
        *_rising("feedback", feedback, groups, stage.settings.tolerance),
        *_rising("names", names, groups, stage.settings.tolerance),
    ]
    return Draft(name=draft.name, asks=draft.asks, holds=draft.holds, claims=tuple(claims))


def _rising(
    what: str,
    values: Mapping[float, NDArray[np.float64]],
    groups: Sequence[int],
    tolerance: float,
) -> list[Claim]:
    levels = list(values)
    claims = [
        Claim(
            name=f"{what} at {more:g} less {less:g}",
            kind="not below",
            bound=-tolerance,
            values=values[more] - values[less],
            groups=groups,
        )
        for less, more in pairwise(levels)
        if len(levels) > 2
    ]
    if len(levels) > 1:
        difference = values[levels[-1]] - values[levels[0]]
        name = _top(what, levels)
        claims.append(Claim(name=name, kind="above", values=difference, groups=groups))
    return claims


def _top(what: str, levels: Sequence[float]) -> str:
    return f"{what} at {levels[-1]:g} less {levels[0]:g}, the whole rise"
