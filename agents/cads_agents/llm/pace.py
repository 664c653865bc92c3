"""How fast one client asks: a rate shared by all threads, and the pauses that a server asks for.

One `Pace` belongs to one client. Its waits end at once when the client is stopped.
"""

from __future__ import annotations

import threading
import time

from cads_agents.llm.numbers import is_number
from cads_env.errors import AgentError, quoted


class Pace:
    """A shared clock of requests.

    Requests start at least `1 / requests_per_second` apart, in the order in which they came, and
    none starts before the end of a pause.
    """

    def __init__(self, requests_per_second: float | None = None) -> None:
        """A pace without a pause.

        Args:
            requests_per_second: Above 0; None for no limit of our own.

        Raises:
            AgentError: The rate is not a number above 0.
        """
        rate = requests_per_second
        if rate is not None:
            if not is_number(rate) or rate <= 0:
                msg = f"requests_per_second is {quoted(rate)}; expected a number above 0, or null."
                raise AgentError(msg)
        self._gap_s = 1.0 / rate if rate is not None else 0.0
        self._lock = threading.Lock()
        self._next_start = 0.0
        self._paused_until = 0.0
        self._stopped = threading.Event()

    def pause(self, seconds: float) -> None:
        """Let no thread start a request for this long."""
        with self._lock:
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def take_turn(self) -> float:
        """Wait for this thread's turn to ask.

        Returns:
            Seconds waited.

        Raises:
            KeyboardInterrupt: The client was stopped.
        """
        began = time.monotonic()
        if self._gap_s:
            with self._lock:
                turn = max(began, self._next_start, self._paused_until)
                self._next_start = turn + self._gap_s
            self.sleep(turn - began)
        # A pause may begin while this thread waits for its turn.
        while (rest := self._rest_s()) > 0:
            self.sleep(rest)
        self.sleep(0)
        return time.monotonic() - began

    def sleep(self, seconds: float) -> None:
        """Wait, unless the client is stopped.

        Raises:
            KeyboardInterrupt: The client was stopped; nothing is wrong with the model.
        """
        stopped = self._stopped.wait(seconds) if seconds > 0 else self._stopped.is_set()
        if stopped:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """End every wait, now and later."""
        self._stopped.set()

    def _rest_s(self) -> float:
        with self._lock:
            return self._paused_until - time.monotonic()
