"""`cads`: the command line. Reads arguments, calls the package, prints; decides nothing itself.

Errors of the user's are one paragraph on stderr; `cads_env.cli.terminal` lists the exit codes.
Other packages add commands through the entry-point group `cads_env.commands`.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer

from cads_env import __version__
from cads_env.cli.agents import agents
from cads_env.cli.arguments import RunCommand
from cads_env.cli.audit import audit_app
from cads_env.cli.compare import compare, merge, split
from cads_env.cli.doctor import doctor
from cads_env.cli.export import export
from cads_env.cli.registry import registry_app
from cads_env.cli.replay import replay
from cads_env.cli.report import report
from cads_env.cli.reproduce import reproduce
from cads_env.cli.run import run
from cads_env.cli.selfcheck import selfcheck
from cads_env.cli.terminal import ERR, OUT, USER_ERROR
from cads_env.errors import CadsError, RunError

COMMAND_GROUP: Final = "cads_env.commands"

app = typer.Typer(
    name="cads",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(cls=RunCommand)(run)
app.command()(agents)
app.command()(compare)
app.command()(merge)
app.command()(split)
app.command()(export)
app.command()(report)
app.command()(replay)
app.command()(reproduce)
app.command()(selfcheck)
app.command()(doctor)
app.add_typer(registry_app, name="registry")
app.add_typer(audit_app, name="audit")


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Certified agentic discovery screens: run agents against their proposer-removed twins."""
    if version:
        OUT.print(f"cads-env {__version__}", highlight=False)
        raise typer.Exit


def _add_commands_of_others() -> None:
    for point in importlib.metadata.entry_points(group=COMMAND_GROUP):
        try:
            command = point.load()
        # Somebody's broken package must not take every other command with it.
        except (Exception, SystemExit) as error:
            command = _broken(point, error)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=point.name)
        else:
            app.command(point.name)(command)


def _broken(point: importlib.metadata.EntryPoint, error: BaseException) -> Callable[[], None]:
    """A command that says why the one of this name cannot be imported."""
    msg = (
        f"The command {point.name!r} ({point.value}) cannot be imported: {type(error).__name__}: "
        f"{error}. Install its package again, or remove it; `cads doctor` names it."
    )

    def command() -> None:
        raise RunError(msg)

    command.__doc__ = "Cannot be imported; call it to read why."
    return command


def main() -> None:
    """The console script: one clear paragraph for a user's error, no traceback."""
    # As with `python -m`: an agent's module in this folder can be named.
    sys.path.insert(0, "")
    _add_commands_of_others()
    try:
        app()
    except CadsError as error:
        said = str(error).rstrip()
        stop = "" if said.endswith((".", "?", "!")) else "."
        text = " ".join([said + stop, *getattr(error, "__notes__", ())])
        ERR.print(f"cads: {text}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(USER_ERROR)
