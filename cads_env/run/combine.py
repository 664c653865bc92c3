"""Runs put together and taken apart by campaign: merge and split.

A campaign is never changed on the way: its rows are copied. What comes out is a run like any other,
with a manifest of its own; campaigns of different rules or registries never meet in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.errors import RunError, suggest
from cads_env.run.compare import check_same_registries
from cads_env.run.folder import RunFolder, run_folder
from cads_env.run.load import load_run
from cads_env.run.manifest import differences
from cads_env.run.mend import whole_lines
from cads_env.run.result import RunResult, arm_json
from cads_env.run.rows import ROW_FILES, Key
from cads_env.run.traces import read_bytes, trace_path

_ENDS: Final = ("arms", "files", "reason", "traces")
"""What the end of a run adds to its manifest."""


class _Part(NamedTuple):
    """A run with the keys to copy from it and the new name of each of its arms."""

    run: RunResult
    keys: frozenset[Key]
    names: Mapping[str, str]


def merge(runs: Sequence[str | Path], out: str | Path, *, label_arms: bool = False) -> RunResult:
    """One run that holds the campaigns of several.

    They must agree in panel, protocol, certificate, identifiers and in the content of every
    registry; seeds and arms may differ. A campaign that two of them hold must be the same in both.

    Args:
        runs: Folders of at least two runs.
        out: A new folder.
        label_arms: Name the arms `run:arm`, so that arms of one name stay apart.

    Returns:
        The new run. It is complete when every arm has every seed; else the command that plays all
        of them goes on with it.

    Raises:
        RunError: The runs do not fit together, or `out` is in use or cannot be written.
        RecordError: A file of a run is damaged.
    """
    loaded = [load_run(run) for run in runs]
    if len(loaded) < 2:
        msg = f"{len(loaded)} runs were given; expected at least two to merge."
        raise RunError(msg)
    for one, other in combinations(loaded, 2):
        _check_mergeable(one, other)
    parts = _labelled_parts(loaded, label_arms)
    config = dict(loaded[0].manifest["config"])
    config["seeds"] = list(dict.fromkeys(s for r in loaded for s in r.manifest["config"]["seeds"]))
    config["keep_reads"] = all(r.manifest["config"]["keep_reads"] for r in loaded)
    config["agents"] = _merged_agents(parts)
    return _write(parts, config, out, loaded[0].manifest)


def split(
    run: str | Path,
    out: str | Path,
    *,
    arms: Sequence[str] = (),
    seeds: Iterable[int] | None = None,
    registries: Sequence[str] = (),
) -> RunResult:
    """A run that holds some campaigns of another.

    Args:
        run: Folder of a run.
        out: A new folder.
        arms: Names of the arms to take; empty for all.
        seeds: Seeds to take; None for all.
        registries: Names of the registries to take; empty for all.

    Returns:
        The new run.

    Raises:
        RunError: Nothing is left, a name is unknown, or `out` is in use or cannot be written.
        RecordError: A file of the run is damaged.
    """
    whole = load_run(run)
    config = dict(whole.manifest["config"])
    names = [entry["arm"] for entry in config["agents"]]
    wanted = list(arms) or names
    _check_known(wanted, names, "arm")
    _check_known(registries, [r["name"] for r in whole.manifest["registries"]], "registry")
    panel = config["registries"]
    given = config["seeds"] if seeds is None else list(seeds)
    _check_known([str(s) for s in given], [str(s) for s in config["seeds"]], "seed")
    kept = [
        s for s in config["seeds"] if s in set(given)
        and (not registries or panel[s % len(panel)] in registries)
    ]  # fmt: skip
    if not kept:
        msg = f"No campaign of {run} is left under these seeds and registries; widen them."
        raise RunError(msg)
    config["seeds"] = kept
    config["agents"] = [entry for entry in config["agents"] if entry["arm"] in wanted]
    keys = frozenset(k for k in _keys(whole) if k.arm in wanted and k.seed in set(kept))
    part = _Part(whole, keys, {name: name for name in wanted})
    return _write([part], config, out, whole.manifest)


def _check_known(wanted: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in wanted:
        if name not in known:
            msg = f"The run has no {what} {name!r}. {suggest(name, known)}"
            raise RunError(msg)


def _check_mergeable(first: RunResult, other: RunResult) -> None:
    one, two = first.manifest["config"], other.manifest["config"]
    found = [
        text
        for name in ("registries", "protocol", "law_code_sha256", "certificate", "identifiers")
        for text in differences(one.get(name), two.get(name), name)
    ]
    versions = [run.manifest["versions"].get("cads-env") for run in (first, other)]
    if versions[0] != versions[1]:
        found.append(f"cads-env (there {versions[0]}, here {versions[1]})")
    if found:
        msg = (
            f"{first.folder} and {other.folder} cannot be merged: they differ in "
            f"{'; '.join(found)}. `cads compare` contrasts them without mixing."
        )
        raise RunError(msg)
    check_same_registries(first, other)


def _labelled_parts(runs: Sequence[RunResult], label_arms: bool) -> list[_Part]:
    labels = [Path(run.folder or "").name for run in runs]
    if label_arms and len(set(labels)) != len(labels):
        msg = f"The runs' folders have one name: {', '.join(labels)}. Rename one to label its arms."
        raise RunError(msg)
    named = [
        {arm: f"{label}:{arm}" if label_arms else arm for arm in run.arms}
        for run, label in zip(runs, labels, strict=True)
    ]
    owners = _owners(runs, named)
    return [
        _Part(run, frozenset(key for key in _keys(run) if owners[_renamed(key, names)] == i), names)
        for i, (run, names) in enumerate(zip(runs, named, strict=True))
    ]


def _renamed(key: Key, names: Mapping[str, str]) -> Key:
    return key._replace(arm=names[key.arm])


def _owners(runs: Sequence[RunResult], named: Sequence[Mapping[str, str]]) -> dict[Key, int]:
    """Which run gives each campaign: the first that scored it, or else that it failed in.

    Raises:
        RunError: Two runs scored a campaign differently.
    """
    rows: dict[Key, dict[str, Any]] = {}
    owners: dict[Key, int] = {}
    for i, (run, names) in enumerate(zip(runs, named, strict=True)):
        for row in run.campaigns.to_dict("records"):
            key = _renamed(Key(row["arm"], row["registry"], row["seed"]), names)
            mine = {str(name): value for name, value in row.items() if name != "arm"}
            if rows.setdefault(key, mine) != mine:
                msg = (
                    f"Two runs tell different things of the campaign {tuple(key)}: one was "
                    "changed, or its agent is not deterministic. Say --label-arms to keep both."
                )
                raise RunError(msg)
            owners.setdefault(key, i)
    for i, (run, names) in enumerate(zip(runs, named, strict=True)):
        for failure in run.failures:
            owners.setdefault(_renamed(Key(failure.arm, failure.registry, failure.seed), names), i)
    return owners


def _merged_agents(parts: Sequence[_Part]) -> list[dict[str, Any]]:
    agents: dict[str, dict[str, Any]] = {}
    for part in parts:
        for entry in part.run.manifest["config"]["agents"]:
            renamed = {**entry, "arm": part.names[entry["arm"]]}
            known = agents.setdefault(renamed["arm"], renamed)
            found = differences(known, renamed, "agent")
            if found:
                msg = (
                    f"Two runs have an arm {renamed['arm']!r} that is not the same agent: "
                    f"{'; '.join(found)}. Say --label-arms to keep them apart."
                )
                raise RunError(msg)
    return list(agents.values())


def _keys(run: RunResult) -> frozenset[Key]:
    scored = run.campaigns[["arm", "registry", "seed"]].values.tolist()
    return frozenset(
        [*(Key(*key) for key in scored), *(Key(f.arm, f.registry, f.seed) for f in run.failures)]
    )


def _write(
    parts: Sequence[_Part], config: dict[str, Any], out: str | Path, manifest: Mapping[str, Any]
) -> RunResult:
    """The run that the parts make, written like any other."""
    panel = config["registries"]
    arms = [entry["arm"] for entry in config["agents"]]
    keys = [Key(arm, panel[s % len(panel)], s) for s in config["seeds"] for arm in arms]
    there = {_renamed(key, part.names) for part in parts for key in part.keys}
    registries = {r["name"]: r for part in parts for r in part.run.manifest["registries"]}
    used = {key.registry for key in there}
    head = {
        **{name: manifest[name] for name in manifest if name not in _ENDS},
        "status": "running",
        "config": config,
        "registries": [registries[name] for name in panel if name in used],
    }
    folder = run_folder(out)
    with RunFolder(folder, head, new=True) as files:
        for part in parts:
            _copy_traces(part, files)
        _copy_begun(parts, [key for key in keys if key not in there], files)
        for name in ROW_FILES:
            files.append(name, _rows(parts, name))
        files.finish(keys, panel)
        result = RunResult.of(files.rows(), files.manifest, folder=str(folder))
        files.note("arms", [arm_json(arm) for arm in result.arms.values()])
        if there != set(keys):
            files.leave_open(f"{len(set(keys) - there)} campaigns are still to be played")
    return result


def _copy_traces(part: _Part, files: RunFolder) -> None:
    """The traces of a part's campaigns, under the new names of their arms."""
    source = Path(part.run.folder or "")
    for key in sorted(part.keys):
        path = trace_path(source, key)
        if path.is_file():
            files.add_trace(_renamed(key, part.names), read_bytes(path))


def _copy_begun(parts: Sequence[_Part], left: Sequence[Key], files: RunFolder) -> None:
    """The traces of campaigns that no part finished: what was answered is not asked for again."""
    for part in parts:
        old = {new: name for name, new in part.names.items()}
        for key in left:
            if key.arm not in old or trace_path(files.place, key).exists():
                continue
            path = trace_path(Path(part.run.folder or ""), key._replace(arm=old[key.arm]))
            raw = read_bytes(path) if path.is_file() else b""
            whole = raw[: raw.rfind(b"\n") + 1]
            if whole:
                files.add_trace(key, whole)


def _rows(parts: Sequence[_Part], name: str) -> Iterator[dict[str, Any]]:
    """The rows of one kind under their new names."""
    for part in parts:
        for line in whole_lines(Path(part.run.folder or "") / f"{name}.jsonl"):
            if line.key in part.keys:
                yield {**line.row, "arm": part.names[line.key.arm]}
