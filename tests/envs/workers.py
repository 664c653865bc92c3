"""What a worker process runs. Never imports cads_env: Gymnasium must find it by its id."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np


def first_rounds(seed: int) -> tuple[bool, list[Any]]:
    """Whether cads_env was loaded before, and what reset and one step return."""
    loaded = "cads_env" in sys.modules
    env = gym.make("cads_env:CADSScreen-v0", registry="synthetic-depmap-6000/0")
    returned: list[Any] = [env.reset(seed=seed)]
    screen: Any = env.unwrapped
    returned.append(env.step(np.arange(screen.batch, dtype=np.int64)))
    return loaded, returned
