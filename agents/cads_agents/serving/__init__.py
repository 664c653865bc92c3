"""What it takes to serve a model so that a run against it can be repeated.

Flags and environment of vLLM, which of them this machine needs, and two small models that every
machine can make. Never imports vLLM: a server has a Python of its own.
"""

from cads_agents.serving.command import Command, serve_command
from cads_agents.serving.flags import Settings
from cads_agents.serving.interpreter import ServerPython, find_server_python
from cads_agents.serving.recipes import RECIPES, Recipe

__all__ = [
    "RECIPES",
    "Command",
    "Recipe",
    "ServerPython",
    "Settings",
    "find_server_python",
    "serve_command",
]
