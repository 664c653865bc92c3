"""`cads reproduce`: published tables and figures played again, beside the published figures."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cads_env.cli.arguments import parse_pairs
from cads_env.cli.progress import CampaignProgress
from cads_env.cli.terminal import ERR, NOT_AGREED, OUT
from cads_env.errors import StudyError, suggest
from cads_env.report.studies import (
    StudyFolder,
    check_folder,
    reproduce_into,
    study_tables,
    verdict_line,
    write_summary,
)
from cads_env.report.studies.content import verdicts_of
from cads_env.report.studies.folder import DEFAULT_ROOT
from cads_env.report.terminal import facts
from cads_env.run.executors import Executor, cpu_count
from cads_env.run.folder import numbered
from cads_env.studies.catalogue import ALL, STUDIES, find_items, load_study
from cads_env.studies.config import load_config
from cads_env.studies.play import StudyRows

CHECK = "check"


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables, figures or studies by name, or all; `check DIR...` checks folders.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List what can be reproduced.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds a cell; default the published number.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; default all cores. Results do not depend on it.")
    ] = None,
    executor: Annotated[str, typer.Option(help="processes or ray.")] = "processes",
    address: Annotated[
        str | None, typer.Option(help="Ray cluster: auto, HOST:PORT or local.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where each study gets a folder; default studies/0001, counting up."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Play anew what --out holds already.")
    ] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Setting of a study's config, name=value.")
    ] = None,
    depmap: Annotated[
        Path | None, typer.Option(help="Your CRISPRGeneEffect.csv, for table-s2.")
    ] = None,
    dependency: Annotated[
        Path | None, typer.Option(help="Your CRISPRGeneDependency.csv, for its labels.")
    ] = None,
    line: Annotated[
        list[str] | None, typer.Option(help="Line of --depmap; repeat; default the published ones.")
    ] = None,
    registry: Annotated[
        str | None, typer.Option(help="Any registry by name or path, for table-s2.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-O", help="Option of --registry's source.")
    ] = None,
    replay: Annotated[
        int, typer.Option(min=0, help="With check: seeds of every cell that are played again.")
    ] = 0,
) -> None:
    """Play published tables and figures again and print ours | published | difference | verdict.

    `cads reproduce check DIR` recomputes every aggregate of a study's folder from its rows.
    """
    names = items or []
    if list_:
        OUT.print(facts(_listing()))
        return
    if names[:1] == [CHECK]:
        _check([Path(name) for name in names[1:]], replay)
        return
    if not names:
        msg = f"Nothing to reproduce was named; expected tables, figures, studies or {ALL!r}. "
        raise StudyError(msg + "`cads reproduce --list` names them.")
    files: dict[str, Any] = {
        "depmap": None if depmap is None else str(depmap),
        "dependency": None if dependency is None else str(dependency),
        "lines": line,
        "registry": registry,
        "options": parse_pairs(option or [], "--option") or None,
    }
    changes = {name: value for name, value in files.items() if value is not None}
    plans = _plans(find_items(names), changes | parse_pairs(set_ or [], "--set"), seeds)
    where = Executor(
        kind=executor,  # type: ignore[arg-type]
        jobs=jobs if jobs is not None else cpu_count() if executor == "processes" else 1,
        address=address,
    )
    root = numbered(Path(DEFAULT_ROOT)) if out is None else out
    try:
        lines, off = [], 0
        for plan in plans:
            study, seconds = _reproduce(plan, root, where, replace)
            off += verdicts_of(study.built)["off"]
            lines.append((verdict_line(study), seconds))
        if len(lines) > 1:
            for text, seconds in lines:
                _say(f"{text} {seconds:.1f} s")
            write_summary(root, [text for text, _ in lines])
    finally:
        if out is None:
            # Of a study that could not begin no empty folder stays.
            with contextlib.suppress(OSError):
                root.rmdir()
    if off:
        raise typer.Exit(NOT_AGREED)


def _listing() -> list[tuple[str, str]]:
    rows = []
    for name in STUDIES:
        study = load_study(name)
        plan = StudyRows.plan(study, load_config(name), tuple(study.items))
        about = f"{study.title}\n{', '.join(study.items)}\n{plan.campaigns:,} rows as published"
        rows.append((name, about))
    return rows


def _plans(
    wanted: Mapping[str, tuple[str, ...]], changes: Mapping[str, Any], seeds: int | None
) -> list[StudyRows]:
    """The plans of the studies that are asked for; a change goes to those that know it."""
    configs = {name: load_config(name) for name in wanted}
    for setting in changes:
        if not any(setting in config for config in configs.values()):
            known = {key for config in configs.values() for key in config}
            msg = f"None of {', '.join(wanted)} has a setting {setting!r}. "
            raise StudyError(msg + suggest(setting, known))
    plans = []
    for name, items in wanted.items():
        mine = {k: v for k, v in changes.items() if k in configs[name]}
        study = load_study(name)
        plans.append(StudyRows.plan(study, load_config(name, mine), items, seeds=seeds))
    return plans


def _reproduce(
    plan: StudyRows, root: Path, executor: Executor, replace: bool
) -> tuple[StudyFolder, float]:
    """Play one study and print it; gives it and the seconds that it took."""
    began = time.monotonic()
    total, done = plan.campaigns, 0
    with CampaignProgress(total) as progress:

        def count(rows: int) -> None:
            nonlocal done
            done += rows
            progress(done, total, plan.study.name)

        study = reproduce_into(root, plan, executor=executor, replace=replace, progress=count)
    for shown in study_tables(study):
        OUT.print(shown)
    seconds = time.monotonic() - began
    played = "read" if study.was_there else f"{total:,} rows in {seconds:.1f} s"
    _say(f"{verdict_line(study)} {played}. Files: {study.folder}\n")
    return study, seconds


def _say(text: str) -> None:
    OUT.print(text, markup=False, highlight=False, soft_wrap=True)


def _check(folders: list[Path], replay: int) -> None:
    if not folders:
        msg = "No folder was named; expected `cads reproduce check DIR`, a folder of a study."
        raise StudyError(msg)
    found = 0
    for folder in folders:
        for place in _study_folders(folder):
            problems = check_folder(place, replay=replay)
            found += len(problems)
            if not problems:
                OUT.print(f"{place}: holds together.", markup=False, highlight=False)
            for problem in problems:
                ERR.print(f"{place}: {problem}", markup=False, highlight=False, soft_wrap=True)
    if found:
        raise typer.Exit(NOT_AGREED)


def _study_folders(folder: Path) -> list[Path]:
    """A study's folder, or those that stand in a folder of studies."""
    if folder.is_dir() and not (folder / "manifest.json").exists():
        inside = sorted(p.parent for p in folder.glob("[!.]*/manifest.json"))
        if inside:
            return inside
    return [folder]
