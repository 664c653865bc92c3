"""The Gymnasium environments of cads-env and the factories behind their ids."""

from cads_env.envs.factory import make, make_env, make_text_env, make_vector_env
from cads_env.envs.screen_env import ScreenEnv
from cads_env.envs.text_env import TextScreenEnv
from cads_env.envs.text_space import playable_text
from cads_env.envs.vector_env import ScreenVectorEnv

__all__ = [
    "ScreenEnv",
    "ScreenVectorEnv",
    "TextScreenEnv",
    "make",
    "make_env",
    "make_text_env",
    "make_vector_env",
    "playable_text",
]
