"""The work as a worker process holds it: unpacked once, then asked for every task.

What is unpacked here must not be changed by playing, or results would depend on the worker.
"""

from __future__ import annotations

import pickle
from typing import Any

from cads_env.errors import RunError


def unpack(packed: bytes) -> Any:
    """The work that was sent.

    Raises:
        RunError: It cannot be loaded in this process.
    """
    try:
        return pickle.loads(packed)
    except Exception as error:
        msg = (
            "An agent, a registry or a function cannot be loaded in another process "
            f"({type(error).__name__}: {error}). Give it by name, an agent as module:Class or "
            "file.py, or play in this process (jobs=1)."
        )
        raise RunError(msg) from error
