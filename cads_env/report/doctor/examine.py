"""All findings in the order in which they are read, and what they come to."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cads_env.report.doctor.finding import Finding, guarded
from cads_env.report.doctor.installation import installation
from cads_env.report.doctor.places import places
from cads_env.report.doctor.self_check import self_check


def examine() -> list[Finding]:
    """Everything that the doctor sees. Never raises; takes about a second."""
    return [*installation(), *places(), *guarded("self-check", self_check)]


def is_well(findings: Sequence[Finding]) -> bool:
    """Whether all that the core needs is well."""
    return all(finding.status != "problem" for finding in findings)


def as_json(findings: Sequence[Finding]) -> str:
    """The findings as one JSON object: `version`, `well` and `findings`."""
    value = {
        "version": 1,
        "well": is_well(findings),
        "findings": [finding._asdict() for finding in findings],
    }
    return json.dumps(value, indent=2, ensure_ascii=True)
