"""How `cads` starts: the command line where it can be imported, else what is broken.

Imports only the standard library before the command line itself, so that a missing package is one
paragraph and `cads doctor` still looks.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

_USER_ERROR: Final = 1


def main() -> None:
    """The console script: no traceback for a package that is missing or broken."""
    try:
        from cads_env.cli.app import main as command_line
    # A package built for another Python or processor raises what it likes.
    except Exception as error:
        sys.exit(_say_what_is_broken(error, sys.argv[1:]))
    command_line()


def _say_what_is_broken(error: Exception, arguments: Sequence[str]) -> int:
    from cads_env.report.doctor import as_json, examine
    from cads_env.report.doctor.finding import said

    if arguments[:1] == ["doctor"]:
        findings = examine()
        lines = [f"{f.section}: {f.name}: {f.status}: {f.text}" for f in findings]
        text = as_json(findings) if "--json" in arguments else "\n".join(lines)
        sys.stdout.write(f"{text}\n")
    sys.stderr.write(
        f"cads: a package that cads-env needs is missing or broken ({said(error)}). `cads doctor` "
        "says which; to install it again: pip install --force-reinstall cads-env\n"
    )
    return _USER_ERROR
