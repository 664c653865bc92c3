"""`replay-list`: proposes a ranking that was written down before the screen began."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cads_agents.ranking import first_untested
from cads_env.errors import AgentError, error_text
from cads_env.proposer import View


class ReplayList:
    """Ranking from a text file, one identifier a line, best first; empty lines are skipped."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Read the file.

        Args:
            path: The file, UTF-8 text.

        Raises:
            AgentError: No path was given, the file cannot be read, or it is empty.
        """
        if path is None:
            msg = "Agent replay-list needs a file: replay-list:path=ranking.txt."
            raise AgentError(msg)
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            msg = f"Ranking file {str(path)!r} cannot be read: {error_text(error)}."
            raise AgentError(msg) from error
        self._path = str(path)
        self._order = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
        if not self._order:
            msg = f"Ranking file {self._path!r} is empty; expected one identifier a line."
            raise AgentError(msg)
        self._known: list[str] | None = None

    def propose(self, view: View) -> Sequence[str]:
        """The first untested names of the list that the registry has.

        Raises:
            AgentError: The registry has none of them.
        """
        if self._known is None:
            members = set(view.identifiers)
            self._known = [name for name in self._order if name in members]
            if not self._known:
                msg = (
                    f"None of the {len(self._order)} names of {self._path!r} (first: "
                    f"{self._order[0]!r}) is in the registry (first: {view.identifiers[0]!r})."
                )
                raise AgentError(msg)
        return first_untested(self._known, view)
