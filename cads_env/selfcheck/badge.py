"""The badge of a protocol: what its self-check found, looked up by the protocol's hash.

Recorded outcomes lie in `cads_configs/selfchecks` and in the folder `selfchecks` of the user's
data folder. A record says which panel it holds for. Never plays anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal
from typing import Protocol as Interface

from cads_env.errors import RunError, error_text
from cads_env.files import write_whole
from cads_env.protocol import Protocol
from cads_env.selfcheck.outcome import KIND, SCHEMA_VERSION, SelfCheck
from cads_env.sources.remembered import data_folder

FOLDER: Final = "selfchecks"
UNKNOWN: Final = "not self-checked"

State = Literal["passed", "failed", "undecided", "not self-checked"]
_STATES: Final = ("passed", "failed", "undecided")
_LARGEST: Final = 4_000_000
"""Bytes of a record, at most; ours have about 30 thousand."""


class _Readable(Interface):
    """A folder or file, of the package or of the disk."""

    @property
    def name(self) -> str: ...
    def read_text(self, encoding: str) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """What is known of a protocol's self-check.

    Attributes:
        state: "passed", "failed", "undecided" or "not self-checked".
        protocol: Name of the protocol that was asked for.
        passed: Checks passed.
        applicable: Checks that applied.
        panel: Panel that the outcome holds for; empty when there is none.
        version: Version of cads-env that played; empty when there is none.
        says: The verdict in a sentence.
    """

    state: State
    protocol: str
    passed: int = 0
    applicable: int = 0
    panel: str = ""
    version: str = ""
    says: str = ""

    @property
    def text(self) -> str:
        """The badge on one line, such as `self-check passed | 7/7 | standard`."""
        if self.state == UNKNOWN:
            return f"{UNKNOWN}: run cads selfcheck --protocol {self.protocol}"
        return f"self-check {self.state} | {self.passed}/{self.applicable} | {self.protocol}"

    @property
    def is_ranked(self) -> bool:
        """Whether arms may be ranked under the protocol: only when it passed."""
        return self.state == "passed"

    def to_json(self) -> dict[str, Any]:
        """Every field, and the text."""
        return {name: getattr(self, name) for name in self.__slots__} | {"text": self.text}


def badge_of(protocol: Protocol, panel: str | None = None) -> Badge:
    """The badge of a protocol from recorded outcomes.

    Args:
        protocol: Any protocol; its hash decides, not its name.
        panel: Only outcomes on this panel count; None for any. Of several, one that failed wins,
            then the last by file name.

    Returns:
        The badge; "not self-checked" where no record fits.
    """
    found = [
        record
        for record in _records()
        if record["protocol_hash"] == protocol.hash and panel in (None, record["panel"])
    ]
    if not found:
        return Badge(state=UNKNOWN, protocol=protocol.name, says=_advice(protocol))
    failed = [record for record in found if record["verdict"] == "failed"]
    record = (failed or found)[-1]
    return Badge(
        state=record["verdict"],
        protocol=protocol.name,
        passed=record["passed"],
        applicable=record["applicable"],
        panel=record["panel"],
        version=record["cads_env"],
        says=record["says"],
    )


def badge_from(outcome: SelfCheck) -> Badge:
    """The badge of an outcome at hand."""
    return Badge(
        state=outcome.word,
        protocol=outcome.protocol,
        passed=outcome.passed_count,
        applicable=len(outcome.applicable),
        panel=outcome.panel,
        version=outcome.version,
        says=outcome.verdict,
    )


def record_name(outcome: SelfCheck) -> str:
    """File name of a recorded outcome: protocol hash and panel, so that a repeat replaces it."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in outcome.panel)[:60]
    return f"{outcome.protocol_hash[:16]}-{safe}.json"


def record(outcome: SelfCheck, folder: Path | None = None) -> Path:
    """Keep an outcome where `badge_of` finds it.

    Args:
        outcome: What a self-check found.
        folder: Where; None for the user's data folder.

    Returns:
        The file.

    Raises:
        RunError: It cannot be written.
    """
    place = data_folder() / FOLDER if folder is None else folder
    path = place / record_name(outcome)
    try:
        place.mkdir(parents=True, exist_ok=True)
        write_whole(path, [as_text(outcome).encode()])
    except OSError as error:
        msg = f"The self-check cannot be recorded in {str(place)!r}: {error_text(error)}."
        raise RunError(msg) from error
    return path


def as_text(outcome: SelfCheck) -> str:
    """The outcome as the text of a JSON file."""
    return json.dumps(outcome.to_json(), indent=1, allow_nan=False) + "\n"


def _advice(protocol: Protocol) -> str:
    return (
        f"Nobody has recorded whether scores under {protocol.name} rise with skill alone; "
        f"`cads selfcheck --protocol {protocol.name} --record` looks."
    )


def _records() -> Iterator[Mapping[str, Any]]:
    """Every usable record, the package's own before the user's; others are passed over."""
    for file in _files():
        try:
            data = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if _is_record(data):
            yield data


def _files() -> Iterator[_Readable]:
    ours = resources.files("cads_configs") / FOLDER
    if ours.is_dir():
        yield from sorted(
            (file for file in ours.iterdir() if file.name.endswith(".json")),
            key=lambda file: file.name,
        )
    try:
        own = sorted((data_folder() / FOLDER).glob("*.json"))
        yield from (path for path in own if path.is_file() and path.stat().st_size < _LARGEST)
    except OSError:
        return


def _is_record(data: object) -> bool:
    """Whether a file holds what a badge needs; a badge must not break on a stranger's file."""
    if not isinstance(data, Mapping) or data.get("kind") != KIND:
        return False
    texts = all(
        isinstance(data.get(k), str) for k in ("protocol_hash", "panel", "says", "cads_env")
    )
    passed, applicable = data.get("passed"), data.get("applicable")
    counts = type(passed) is int and type(applicable) is int and 0 <= passed <= applicable
    fits = data.get("schema_version") == SCHEMA_VERSION and data.get("verdict") in _STATES
    return texts and counts and fits
