"""`cads compare`, `cads merge` and `cads split`: runs by campaign."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from cads_env.cli.arguments import parse_seeds
from cads_env.cli.terminal import OUT
from cads_env.errors import RunError, printable
from cads_env.inference import CANNOT_TELL
from cads_env.report.terminal import (
    Name,
    detectable,
    detectable_words,
    difference,
    longest_part,
    run_table,
)
from cads_env.report.wording import counted, plain, visible
from cads_env.run.combine import merge as merge_runs
from cads_env.run.combine import split as split_run
from cads_env.run.compare import Comparison
from cads_env.run.compare import compare as compare_runs
from cads_env.run.grid import is_grid
from cads_env.run.manifest import MANIFEST_FILE

Folders = Annotated[list[Path], typer.Argument(help="Folders of runs.")]


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN... [FIRST SECOND]",
            help="Folders of runs, or of one grid; then two arms, as --contrast FIRST,SECOND.",
        ),
    ],
    margin: Annotated[
        float, typer.Option(help="Largest difference that does not matter, in declarations.")
    ] = 1.0,
    score: Annotated[
        str, typer.Option(help="net, or true for certified hits without the twin's taken off.")
    ] = "net",
    contrast: Annotated[
        list[str] | None,
        typer.Option(
            help="FIRST,SECOND: labels as the table prints them (arm, or run:arm); repeat. "
            "Default: all pairs in one run, arms of one name in several."
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Arm that every other one is compared with.")
    ] = None,
    across: Annotated[
        list[str] | None,
        typer.Option(help="protocol, certificate or identifiers: what the runs may differ in."),
    ] = None,
) -> None:
    """Contrast arms over the campaigns that they share: paired interval, Holm, equivalence.

    Campaigns are paired by registry and seed; runs on other registries, protocols, certificates or
    identifiers are refused unless --across names the difference. In a grid the contrasts are made
    in every setting, as one family.
    """
    folders, arms = _sorted_out(runs)
    pairs = [_pair(text) for text in contrast or []] + arms
    found = compare_runs(
        folders,
        margin=margin,
        score=score,  # type: ignore[arg-type]
        contrasts=pairs,
        baseline=baseline,
        across=across or [],
    )
    OUT.print(_table(found))
    for line in _notes(found):
        OUT.print(printable(line), markup=False, highlight=False)


def _sorted_out(words: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Folders, and the contrast of the two words that are none.

    Raises:
        RunError: There are not two such words.
    """
    # The first is a folder in any case, and an error says what is wrong with it.
    folders = [word for i, word in enumerate(words) if i == 0 or _is_folder(word)]
    arms = [word for word in words[1:] if word not in folders]
    if not arms:
        return folders, []
    if len(arms) != 2:
        msg = (
            f"{', '.join(map(repr, arms))}: no folder of a run, so taken for names of arms, of "
            "which two make a contrast; expected none or two of them. Several contrasts are given "
            "with --contrast FIRST,SECOND or --baseline ARM."
        )
        raise RunError(msg)
    return folders, [(arms[0], arms[1])]


def _is_folder(word: str) -> bool:
    """True for the folder of a run or grid, and for any other that is named by a path."""
    path = Path(word)
    if not path.is_dir():
        return False
    return len(path.parts) > 1 or is_grid(path) or (path / MANIFEST_FILE).exists()


def _pair(text: str) -> tuple[str, str]:
    first, comma, second = text.partition(",")
    if not (first and comma and second) or "," in second:
        msg = f"Cannot read --contrast {text!r}; expected two labels, FIRST,SECOND."
        raise RunError(msg)
    return first.strip(), second.strip()


def _table(found: Comparison) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    # A part of a name that is broken in its middle is hard to read; a long one must still fold.
    names = [Name(visible(row.contrast.name, 200)) for row in found.rows]
    table.add_column("contrast", min_width=longest_part(names, least=14))
    for column in ("diff.", "95 %", "n", "det.", "Holm", "TOST"):
        table.add_column(column, justify="right", no_wrap=True)
    # The longest word of a verdict: rich would else cut it to keep the figures whole.
    table.add_column("verdict", overflow="fold", min_width=11)
    for name, row in zip(names, found.rows, strict=True):
        estimate, verdict = row.contrast.estimate, row.contrast.verdict
        is_known = not (math.isnan(estimate.low) or verdict.startswith(CANNOT_TELL))
        tests = (row.contrast.holm, row.contrast.equivalence.p_value)
        cells = [
            difference(estimate.mean),
            f"{estimate.low:.2f}, {estimate.high:.2f}" if is_known else "-",
            str(row.shared),
            detectable(estimate),
            *(_p(p) if is_known else "-" for p in tests),
            verdict,
        ]
        table.add_row(name, *map(Text, cells))
    return table


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}".lstrip("0")


def _notes(found: Comparison) -> list[str]:
    what = "paired nets" if found.score == "net" else "certified hits"
    several = len(found.rows) > 1
    family = f"the {len(found.rows)} contrasts above" if several else "this contrast alone"
    estimates = [row.contrast.estimate for row in found.rows]
    scopes = dict.fromkeys(estimate.scope for estimate in estimates if estimate.n)
    noun = "declaration" if found.margin == 1 else "declarations"
    declarations = f"{plain(found.margin)} {noun}"
    notes = [
        f"diff.: mean difference of {what} over the n campaigns (registry and seed) that both "
        f"scored, {'; '.join(scopes)}. {detectable_words(estimates)}",
        f"Holm: two-sided p, adjusted over {family}. TOST: p that the difference is at least "
        f"{declarations} either way.",
    ]
    for row in found.rows:
        if row.first_only or row.second_only:
            notes.append(
                f"{row.contrast.name}: {counted(row.first_only, 'campaign')} of {row.first} and "
                f"{row.second_only} of {row.second} have no partner and are left out."
            )
    return [*notes, *(f"NOTE: {note}" for note in found.notes)]


def merge(
    runs: Folders,
    out: Annotated[Path, typer.Option(help="New folder.")],
    label_arms: Annotated[
        bool, typer.Option("--label-arms", help="Name arms run:arm, to keep them apart.")
    ] = False,
) -> None:
    """Put runs over the same panel, protocol and certificate into one."""
    result = merge_runs(runs, out, label_arms=label_arms)
    OUT.print(run_table(result))


def split(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path, typer.Option(help="New folder.")],
    arm: Annotated[list[str] | None, typer.Option(help="Arm to take; repeat.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds to take, e.g. 0-9.")] = None,
    registry: Annotated[list[str] | None, typer.Option(help="Registry to take; repeat.")] = None,
) -> None:
    """Take some arms, seeds or registries of a run into a new one."""
    result = split_run(
        run,
        out,
        arms=arm or [],
        seeds=None if seeds is None else parse_seeds(seeds),
        registries=registry or [],
    )
    OUT.print(run_table(result))
