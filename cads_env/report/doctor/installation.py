"""Python, cads-env, the packages that it asks for, its extras, and what others add to it.

Entry points are loaded one by one, since that is what a run does with them; nothing that they give
is called.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from cads_env.report.doctor.finding import Finding, Status, guarded, said
from cads_env.report.doctor.versions import Requirement, is_met, parse_requirement

DISTRIBUTION: Final = "cads-env"
AGENT_GROUP: Final = "cads_env.agents"
COMMAND_GROUP: Final = "cads_env.commands"
_SOURCE_INSTALL: Final = "pip install -e ."


def installation() -> list[Finding]:
    """Findings on Python, packages, extras, agents and commands."""
    found = guarded("versions", _python)
    found += guarded("versions", _core)
    found += guarded("extras", _extras)
    found += guarded("agents", lambda: _entry_points("agents", AGENT_GROUP))
    found += guarded("commands", lambda: _entry_points("commands", COMMAND_GROUP))
    return found


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    wanted = ""
    try:
        wanted = importlib.metadata.metadata(DISTRIBUTION)["Requires-Python"] or ""
    except importlib.metadata.PackageNotFoundError:
        pass
    kind = f"{platform.python_implementation()} on {platform.system()} {platform.machine()}"
    if is_met(version, wanted) is False:
        text = f"{version}; needs {wanted}. Install a Python in that range. {kind}"
        yield Finding("versions", "python", "problem", text)
    else:
        yield Finding("versions", "python", "ok", f"{version} ({kind})")
    in_own = sys.prefix != sys.base_prefix
    text = "a virtual environment" if in_own else "the system's Python, no virtual environment"
    yield Finding("versions", "environment", "ok", text)


def _core() -> Iterator[Finding]:
    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        text = f"runs from its source without being installed. {_SOURCE_INSTALL}"
        yield Finding("versions", DISTRIBUTION, "problem", text)
        return
    from cads_env import __version__

    if version == __version__:
        yield Finding("versions", DISTRIBUTION, "ok", version)
    else:
        text = f"metadata of {version} beside code of {__version__}. Install it again."
        yield Finding("versions", DISTRIBUTION, "problem", text)
    owners = importlib.metadata.packages_distributions()
    for requirement in _requirements():
        if requirement.extra is None:
            status, text = _state(requirement, must=not requirement.is_conditional)
            broken = _import_error(requirement.name, owners) if status == "ok" else None
            if broken is not None:
                again = f"pip install --force-reinstall '{requirement.name}{requirement.range}'"
                status, text = "problem", f"{text}, but cannot be imported: {broken}. {again}"
            yield Finding("versions", requirement.name, status, text)


def _import_error(package: str, owners: Mapping[str, list[str]]) -> str | None:
    """Why an installed package cannot be imported; None when it can.

    Args:
        package: Its name.
        owners: Packages by module.
    """
    modules = [m for m, names in owners.items() if package.lower() in map(str.lower, names)]
    # A package may put more than one module there; the one of its own name is what counts.
    same = [m for m in modules if m.lower() == package.lower().replace("-", "_")]
    for module in same or [m for m in modules if m.isidentifier() and not m.startswith("_")]:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            return said(error)
    return None


def _requirements() -> list[Requirement]:
    lines = importlib.metadata.requires(DISTRIBUTION) or []
    return [r for line in lines if (r := parse_requirement(line)) is not None]


def _state(requirement: Requirement, *, must: bool) -> tuple[Status, str]:
    bad: Status = "problem" if must else "note"
    wanted = requirement.range or "any version"
    again = f"pip install '{requirement.name}{requirement.range}'"
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return bad, f"missing; needs {wanted}. {again}"
    met = is_met(version, requirement.range)
    if met is None:
        return "note", f"{version}; cannot tell whether that is in {wanted}"
    if not met:
        return bad, f"{version}; needs {wanted}. {again}"
    return "ok", f"{version} ({wanted})"


def _extras() -> Iterator[Finding]:
    try:
        metadata = importlib.metadata.metadata(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return
    for extra in metadata.get_all("Provides-Extra") or []:
        lacking = sorted(set(_lacking(extra, frozenset())))
        if lacking:
            install = f"pip install '{DISTRIBUTION}[{extra}]'"
            text = f"not installed (lacks {', '.join(lacking)}). {install}"
            yield Finding("extras", extra, "note", text)
        else:
            yield Finding("extras", extra, "ok", "installed")


def _lacking(extra: str, seen: frozenset[str]) -> Iterator[str]:
    """Packages that an extra needs and that are missing or outside their range."""
    for requirement in _requirements():
        if requirement.extra != extra or requirement.is_conditional:
            continue
        if requirement.name.lower().replace("_", "-") == DISTRIBUTION:
            for other in set(requirement.extras) - seen - {extra}:
                yield from _lacking(other, seen | {extra})
        elif _state(requirement, must=True)[0] == "problem":
            yield f"{requirement.name}{requirement.range}"


def _entry_points(section: str, group: str) -> Iterator[Finding]:
    points = sorted(importlib.metadata.entry_points(group=group), key=lambda point: point.name)
    for point in points:
        owner = point.dist.name if point.dist is not None else "an unknown package"
        try:
            point.load()
        except (Exception, SystemExit) as error:
            is_ours = owner == DISTRIBUTION
            what = f"{point.value}, of {owner}, cannot be imported: {said(error)}."
            text = f"{what} Install {owner} again, or remove it."
            yield Finding(section, point.name, "problem" if is_ours else "note", text)
        else:
            yield Finding(section, point.name, "ok", f"{point.value}, of {owner}")
    if section == "agents" and not points:
        text = f"none is installed. {_SOURCE_INSTALL}"
        yield Finding(section, "agents", "problem", text)
