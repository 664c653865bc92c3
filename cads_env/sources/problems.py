"""What checks find wrong with a file: raised at once when loading, gathered when all is wanted.

One code path serves both, so that a check of a file can never disagree with loading it. Never
words a problem: that is the check's own matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cads_env.errors import CadsError, RegistryError


class Problems:
    """Where checks that do not depend on one another leave what they find.

    Attributes:
        found: The messages so far, each once; stays empty when they are raised.
        count: How many were found, also those that had been found before.
    """

    __slots__ = ("_are_gathered", "count", "found")

    def __init__(self, *, are_gathered: bool) -> None:
        """No problems yet.

        Args:
            are_gathered: False raises the first problem.
        """
        self._are_gathered = are_gathered
        self.found: list[str] = []
        self.count = 0

    def add(self, message: str) -> None:
        """Keep a problem, or raise it.

        Raises:
            RegistryError: Problems are not gathered.
        """
        error = RegistryError(message)
        if not self._are_gathered:
            raise error
        self.count += 1
        if str(error) not in self.found:
            self.found.append(str(error))

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep the error that is raised within, and go on behind the block.

        Raises:
            CadsError: Problems are not gathered.
        """
        try:
            yield
        except CadsError as error:
            if not self._are_gathered:
                raise
            self.add(str(error))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Have `report` leave its messages here, within the block and this thread."""
        token = _listening.set(self)
        try:
            yield
        finally:
            _listening.reset(token)


_listening: ContextVar[Problems | None] = ContextVar("listening", default=None)


def report(message: str) -> None:
    """Raise a problem, or leave it where somebody listens and go on.

    For a check that can fill the place of what is wrong, so that what comes after it is looked at
    as well.

    Args:
        message: What is wrong.

    Raises:
        RegistryError: Nobody listens.
    """
    (_listening.get() or Problems(are_gathered=False)).add(message)
