"""Paired contrasts of arms over the campaigns that they share, within a run or between runs.

Campaigns are paired by registry and seed, and only where registry, oracle, protocol, certificate
and identifiers are the same; what may differ has to be named. Arms of a grid are compared setting
by setting. Everything comes from the runs' files.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeGuard

from cads_env.errors import RunError, suggest
from cads_env.inference import CANNOT_TELL, Contrast, compare_family
from cads_env.run.grid import Grid, is_grid, load_grid
from cads_env.run.load import load_run
from cads_env.run.manifest import differences
from cads_env.run.result import NO_SLOT, RunResult

Score = Literal["net", "true"]
SCORES: Final[tuple[Score, ...]] = ("net", "true")
ACROSS: Final = ("protocol", "certificate", "identifiers")
"""What two runs may be allowed to differ in."""


class ArmRows(NamedTuple):
    """One arm of one run.

    Attributes:
        label: `arm`, or `run:arm` where several runs are compared.
        arm: Its name in its run.
        run: The run.
        place: Position of the run among those compared.
    """

    label: str
    arm: str
    run: RunResult
    place: int


class Row(NamedTuple):
    """One contrast of the family.

    Attributes:
        contrast: Estimate, Holm's p, equivalence and verdict.
        first: Label of the arm that is compared.
        second: Label of the arm that it is compared with.
        shared: Campaigns that both scored.
        first_only: Campaigns that the first scored alone; left out.
        second_only: Campaigns that the second scored alone; left out.
    """

    contrast: Contrast
    first: str
    second: str
    shared: int
    first_only: int
    second_only: int


class Comparison(NamedTuple):
    """A family of paired contrasts.

    Attributes:
        rows: One a contrast.
        score: "net", or "true" for certified hits.
        margin: Largest difference that does not matter, in declarations.
        notes: What a reader has to know: what differs, what is incomplete.
    """

    rows: tuple[Row, ...]
    score: Score
    margin: float
    notes: tuple[str, ...]


def compare(
    runs: Sequence[str | Path | RunResult] | str | Path | RunResult | Grid,
    *,
    margin: float = 1.0,
    score: Score = "net",
    contrasts: Sequence[tuple[str, str]] = (),
    baseline: str | None = None,
    across: Collection[str] = (),
) -> Comparison:
    """Contrast arms over the campaigns that they share.

    Args:
        runs: One or several runs or their folders, or one grid or its folder, whose contrasts are
            made in every setting.
        margin: Largest difference that does not matter, in declarations, for the equivalence test.
        score: What is compared: the paired "net", or "true", the certified hits of the arm itself,
            as for full minus permuted feedback.
        contrasts: Pairs of labels (first minus second) that make the family; a last part that only
            one label has (`informed` of `x/informed`) is enough. Empty: in one run all pairs of
            arms; in several, each arm against the arm of that name in the first run, or, where no
            name is shared, all arms of later runs against all of earlier ones.
        baseline: Label of the arm that every other one is compared with; instead of `contrasts`.
        across: What the runs may differ in, of `ACROSS`.

    Returns:
        The contrasts. Holm's adjustment is over all of them.

    Raises:
        RunError: The runs cannot be paired, a label is unknown, or no campaign is shared.
        RecordError: A file of a run is damaged.
    """
    if score not in SCORES:
        msg = f"Unknown score {score!r}. {suggest(str(score), SCORES)}"
        raise RunError(msg)
    check_across(across)
    grid = _only_grid(runs)
    if grid is not None:
        return _compare_settings(grid, contrasts, baseline, score, margin)
    given = [runs] if isinstance(runs, (str, Path, RunResult)) else list(runs)  # type: ignore[arg-type]
    loaded = [run if isinstance(run, RunResult) else load_run(run) for run in given]
    if not loaded:
        msg = "No run was given; expected the folder of at least one."
        raise RunError(msg)
    pairs = itertools.combinations(loaded, 2)
    notes = [n for one, two in pairs for n in _check_pairable(one, two, across, score)]
    notes += [_incomplete(run) for run in loaded if run.status != "complete"]
    arms = _labelled(loaded)
    family = _family(arms, contrasts, baseline)
    named = dict(zip(_names(family), family, strict=True))
    return _compared(arms, named, score, margin, notes)


def _only_grid(runs: object) -> Grid | None:
    """The grid that is to be compared alone; None for runs.

    Raises:
        RunError: A grid stands beside something else.
    """
    given = list(runs) if isinstance(runs, (list, tuple)) else [runs]
    grids = [g for g in given if isinstance(g, Grid) or (_is_path(g) and is_grid(g))]
    if not grids:
        return None
    if len(given) > 1:
        msg = (
            f"{grids[0]} is a grid of settings, which is compared alone. Name the folder of one of "
            "its settings to compare it with another run."
        )
        raise RunError(msg)
    return grids[0] if isinstance(grids[0], Grid) else load_grid(grids[0])


def _is_path(value: object) -> TypeGuard[str | Path]:
    return isinstance(value, (str, Path))


def _compare_settings(
    grid: Grid,
    contrasts: Sequence[tuple[str, str]],
    baseline: str | None,
    score: Score,
    margin: float,
) -> Comparison:
    """The contrasts of every setting as one family."""
    arms: dict[str, ArmRows] = {}
    named: dict[str, tuple[str, str]] = {}
    for place, (setting, run) in enumerate(grid.runs.items()):
        labels = {arm: f"{setting}:{arm}" for arm in run.arms}
        arms |= {label: ArmRows(label, arm, run, place) for arm, label in labels.items()}
        own = {arm: ArmRows(arm, arm, run, place) for arm in run.arms}
        family = _family(own, contrasts, baseline)
        for name, (a, b) in zip(_names(family), family, strict=True):
            named[f"{setting}: {name}"] = (labels[a], labels[b])
    if not named:
        msg = f"No setting of {grid.folder} has begun; there is nothing to compare."
        raise RunError(msg)
    notes = [_incomplete(run) for run in grid.runs.values() if run.status != "complete"]
    waiting = [setting.name for setting in grid.settings if setting.name not in grid.runs]
    if waiting:
        notes.append(f"Not begun yet: {', '.join(waiting)}.")
    return _compared(arms, named, score, margin, notes)


def _compared(
    arms: Mapping[str, ArmRows],
    named: Mapping[str, tuple[str, str]],
    score: Score,
    margin: float,
    notes: Sequence[str],
) -> Comparison:
    """The named contrasts of arms, as one family."""
    rows = {name: (a, b, *_paired(arms[a], arms[b], score)) for name, (a, b) in named.items()}
    if not any(values for _, _, values, *_ in rows.values()):
        msg = (
            f"{' and '.join(dict.fromkeys(itertools.chain(*named.values())))} share no scored "
            "campaign (registry and seed); expected runs over the same registries and seeds."
        )
        raise RunError(msg)
    found = compare_family(
        {name: differences for name, (_, _, differences, *_) in rows.items()},
        {name: registries for name, (_, _, _, registries, *_) in rows.items()},
        margin=margin,
    )
    whole = tuple(
        Row(_within_reach(contrast, arms[a], arms[b]), a, b, len(values), *only)
        for contrast, (a, b, values, _, *only) in zip(found, rows.values(), strict=True)
    )
    return Comparison(whole, score, margin, tuple(dict.fromkeys(notes)))


def _within_reach(contrast: Contrast, *arms: ArmRows) -> Contrast:
    """The contrast, whose verdict says so where neither arm could have certified anything."""
    if not all(arm.run.arms[arm.arm].is_out_of_reach for arm in arms):
        return contrast
    return contrast._replace(verdict=f"{CANNOT_TELL}: {NO_SLOT}")


def _names(family: Sequence[tuple[str, str]]) -> list[str]:
    """A name for each contrast, none twice, whatever the labels hold."""
    names = [f"{a} - {b}" for a, b in family]
    return names if len(set(names)) == len(names) else [f"{a!r} - {b!r}" for a, b in family]


def _incomplete(run: RunResult) -> str:
    played = len(run.campaigns) + len(run.failures)
    return f"{run.folder} is not complete: {played} of {run.planned} campaigns."


def check_across(across: Collection[str]) -> None:
    """Raise unless every name is one of `ACROSS`.

    Raises:
        RunError: Names the one that is not.
    """
    unknown = [name for name in across if name not in ACROSS]
    if unknown:
        msg = f"Unknown across={unknown[0]!r}. {suggest(unknown[0], ACROSS)}"
        raise RunError(msg)


def _check_pairable(
    first: RunResult, other: RunResult, across: Collection[str], score: Score
) -> Iterator[str]:
    """Notes on allowed differences; raises on any other.

    Raises:
        RunError: The runs differ in what they were not allowed to.
    """
    one, two = first.manifest["config"], other.manifest["config"]
    for name in ACROSS:
        # A protocol's name repeats what its fields say.
        found = differences(one[name], two[name], name)
        found = [text for text in found if not text.startswith("protocol.name ")] or found
        if not found:
            continue
        what = f"{first.folder} and {other.folder} differ in {'; '.join(found)}"
        if name not in across:
            msg = (
                f"{what}. Their campaigns are not the same, so they are not paired; say "
                f"--across {name} if that difference is what you want to compare."
            )
            raise RunError(msg)
        yield f"{what}."
        if name == "protocol" and score == "net":
            yield (
                "Each net is over the twin of its own protocol, and the twins may differ: "
                "--score true compares the certified hits of the loops themselves."
            )
    check_same_registries(first, other)
    if "protocol" not in across and "identifiers" not in across:
        _check_same_noise(first, other)


def check_same_registries(first: RunResult, other: RunResult) -> None:
    """Raise when a registry of one name has another content in the other run.

    Raises:
        RunError: Names the registry and the hashes.
    """
    mine = {r["name"]: (r["hash"], r["oracle_hash"]) for r in first.manifest["registries"]}
    for entry in other.manifest["registries"]:
        theirs = (entry["hash"], entry["oracle_hash"])
        known = mine.get(entry["name"], theirs)
        if known != theirs:
            what = "names or side tables" if known[0] != theirs[0] else "effects or labels"
            msg = (
                f"Registry {entry['name']!r} is not the same in {first.folder} and {other.folder}: "
                f"other {what} ({known[0][:12]}/{known[1][:12]} and {theirs[0][:12]}/"
                f"{theirs[1][:12]}). Campaigns on the two are never paired; run both on one file."
            )
            raise RunError(msg)


def _check_same_noise(first: RunResult, other: RunResult) -> None:
    """The same registry, seed and protocol must have given the same twin."""
    twins = [
        {(r, s): t for r, s, t in frame[["registry", "seed", "twin_reads_sha256"]].values.tolist()}
        for frame in (first.campaigns, other.campaigns)
    ]
    for key in twins[0].keys() & twins[1].keys():
        if twins[0][key] != twins[1][key]:
            msg = (
                f"The twins of {first.folder} and {other.folder} on registry {key[0]!r}, seed "
                f"{key[1]}, differ although registry and protocol are the same: the noise is not "
                "shared (another salt, or another version of cads-env), so they are not paired."
            )
            raise RunError(msg)


def _labelled(runs: Sequence[RunResult]) -> dict[str, ArmRows]:
    if len(runs) == 1:
        return {arm: ArmRows(arm, arm, runs[0], 0) for arm in runs[0].arms}
    names = [Path(run.folder or f"run{i + 1}").name for i, run in enumerate(runs)]
    if len(set(names)) != len(names):
        names = [run.folder or f"run{i + 1}" for i, run in enumerate(runs)]
    if len(set(names)) != len(names):
        msg = f"A run is given twice: {', '.join(names)}. Name each once."
        raise RunError(msg)
    labelled = [
        ArmRows(f"{name}:{arm}", arm, run, i)
        for i, (name, run) in enumerate(zip(names, runs, strict=True))
        for arm in run.arms
    ]
    arms = {arm.label: arm for arm in labelled}
    if len(arms) != len(labelled):
        msg = (
            f"Two arms of {', '.join(names)} would both be called "
            f"{next(a.label for a in labelled if arms[a.label] is not a)!r}. Rename a folder."
        )
        raise RunError(msg)
    return arms


def _family(
    arms: Mapping[str, ArmRows], contrasts: Sequence[tuple[str, str]], baseline: str | None
) -> list[tuple[str, str]]:
    contrasts = [(_label(a, arms), _label(b, arms)) for a, b in contrasts]
    baseline = None if baseline is None else _label(baseline, arms)
    if contrasts and baseline is not None:
        msg = "Both contrasts and a baseline were given; expected one of them."
        raise RunError(msg)
    if any(a == b for a, b in contrasts) or len(set(contrasts)) != len(contrasts):
        msg = f"The contrasts {contrasts!r} hold an arm against itself, or one contrast twice."
        raise RunError(msg)
    if contrasts:
        return list(contrasts)
    if baseline is not None:
        return _not_empty([(label, baseline) for label in arms if label != baseline], arms)
    if len({arm.place for arm in arms.values()}) == 1:
        return _not_empty([(b, a) for a, b in itertools.combinations(arms, 2)], arms)
    first = {arm.arm: arm.label for arm in arms.values() if arm.place == 0}
    shared = [(a.label, first[a.arm]) for a in arms.values() if a.place and a.arm in first]
    if shared:
        return shared
    pairs = itertools.combinations(arms.values(), 2)
    return _not_empty([(b.label, a.label) for a, b in pairs if a.place < b.place], arms)


def _label(word: str, arms: Mapping[str, ArmRows]) -> str:
    """The label that a word names: itself, or the only one of which it is the last part.

    Raises:
        RunError: No label or several are named.
    """
    if word in arms:
        return word
    ends = [label for label in arms if label.endswith(f"/{word}")]
    if len(ends) > 1:
        msg = f"{word!r} is the last part of several arms: {', '.join(ends)}. Name one of them."
        raise RunError(msg)
    if not ends:
        msg = f"Unknown arm {word!r}. {suggest(word, arms)}"
        raise RunError(msg)
    return ends[0]


def _not_empty(family: list[tuple[str, str]], arms: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not family:
        msg = f"There is nothing to compare {', '.join(arms)} with; name a second run."
        raise RunError(msg)
    return family


def _paired(a: ArmRows, b: ArmRows, score: Score) -> tuple[list[float], list[str], int, int]:
    """Differences over shared campaigns, their registries, and how many each has alone."""
    mine, theirs = _scores(a, score), _scores(b, score)
    shared = [key for key in mine if key in theirs]
    values = [float(mine[key] - theirs[key]) for key in shared]
    only = (len(mine) - len(shared), len(theirs) - len(shared))
    return values, [registry for registry, _ in shared], *only


def _scores(arm: ArmRows, score: Score) -> dict[tuple[str, int], int]:
    frame = arm.run.campaigns
    own = frame[frame["arm"] == arm.arm]
    columns = own[["registry", "seed", score]].values.tolist()
    return {(registry, seed): value for registry, seed, value in columns}
