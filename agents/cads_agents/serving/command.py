"""The command that serves a model: words and environment, ready to run or to print.

Makes no process of its own; `cads serve` does.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from cads_agents.serving.flags import Settings, server_environment, server_flags
from cads_agents.serving.interpreter import ServerPython

_CPU_MODULE: Final = "vllm.entrypoints.openai.api_server"
_COMMAND_MODULE: Final = "vllm.entrypoints.cli.main"


class Command(NamedTuple):
    """A process to start.

    Attributes:
        words: Program and arguments.
        environment: Variables beyond the user's own.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def as_shell(self) -> str:
        """The same for a shell, one flag a line."""
        lines = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        program, flags = self.words[0], self.words[1:]
        line = shlex.quote(program)
        for word in flags:
            if word.startswith("--"):
                lines.append(line)
                line = f"  {shlex.quote(word)}"
            else:
                line = f"{line} {shlex.quote(word)}"
        return " \\\n".join([*lines, line])


def serve_command(
    model: str | Path,
    server: ServerPython,
    settings: Settings,
    *,
    name: str | None = None,
    is_local: bool = False,
) -> Command:
    """The command that serves a model.

    Args:
        model: A repository of weights, or their folder.
        server: The Python that serves.
        settings: How.
        name: Name under which the model is asked for; None takes that of `model`.
        is_local: Whether `model` is a folder, now or by the time of the start.
    """
    served = name or str(model)
    flags = server_flags(served, settings)
    # The command of vLLM knows more (several machines), but not under another package's name.
    start = (
        ("-m", _COMMAND_MODULE, "serve", str(model))
        if server.is_named_vllm
        else ("-m", _CPU_MODULE, "--model", str(model))
    )
    environment = server_environment(settings, is_local=is_local or Path(model).is_dir())
    return Command((server.path, *start, *flags), environment)
