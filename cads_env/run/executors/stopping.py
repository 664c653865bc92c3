"""How work that is under way is told to end: a signal that it looks at, and what it raises then.

Ends nothing by itself.
"""

from __future__ import annotations


class RunStopped(BaseException):
    """Ends a campaign that cannot go on for now; no error of anybody, so no `Exception`."""


class Stop:
    """A signal that is given once; it also stands when its parent's was given."""

    def __init__(self, parent: Stop | None = None) -> None:
        """Not given.

        Args:
            parent: The signal of the pool that several runs share.
        """
        self._parent = parent
        self._reason: str | None = None

    @property
    def reason(self) -> str | None:
        """Why work should end; None while it should not."""
        if self._reason is not None:
            return self._reason
        return None if self._parent is None else self._parent.reason

    def give(self, reason: str) -> None:
        """Give the signal; the first reason stays."""
        self._reason = self._reason or reason

    def check(self) -> None:
        """Raise when the signal was given.

        Raises:
            RunStopped: With the reason.
        """
        reason = self.reason
        if reason is not None:
            raise RunStopped(reason)
