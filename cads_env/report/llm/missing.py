"""What a grid did not play, and the command that plays it.

Words of a command line; plays nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from cads_env.report.content import Block, Code, Paragraph
from cads_env.report.llm.arms import SettingRun
from cads_env.report.llm.found import Found
from cads_env.report.repeat import command, repeat


def missing_blocks(
    text: str, found: Found, *, feedback: Sequence[str] = (), identifiers: Sequence[str] = ()
) -> list[Block]:
    """What is missing, and the command that plays it into a new folder.

    Args:
        text: What is missing.
        found: From `find_all`.
        feedback: Feedbacks to add, as the command line takes them.
        identifiers: Identifier modes to add.
    """
    words = grid_words(found, feedback=feedback, identifiers=identifiers)
    return [Paragraph(f"{text} The command that plays it too, into a new folder:"), Code(words)]


def grid_words(
    found: Found, *, feedback: Sequence[str] = (), identifiers: Sequence[str] = ()
) -> str:
    """The command that plays the grid, or the part of it that is missing.

    Args:
        found: From `find_all`.
        feedback: Feedbacks to add, as the command line takes them.
        identifiers: Identifier modes to add.
    """
    return setting_words(found.base, found.settings, feedback=feedback, identifiers=identifiers)


def setting_words(
    base: SettingRun,
    settings: Sequence[SettingRun],
    *,
    feedback: Sequence[str] = (),
    identifiers: Sequence[str] = (),
) -> str:
    """The command that plays settings of one run in a grid, as `grid_words`.

    Args:
        base: The setting that is played in any case.
        settings: Those that there are.
        feedback: Feedbacks to add, as the command line takes them.
        identifiers: Identifier modes to add.
    """
    words = [*repeat(base.run).whole]
    for option in ("--feedback", "--identifiers"):
        while option in words:
            at = words.index(option)
            del words[at : at + 2]
    # Settings are every feedback with all identifiers, so what is not wanted is left out.
    own = () if identifiers else tuple(s.feedback for s in settings)
    modes = list(dict.fromkeys([base.feedback, *own, *feedback]))
    own = () if feedback else tuple(s.identifiers for s in settings)
    kinds = list(dict.fromkeys([base.identifiers, *own, *identifiers]))
    if modes != ["full"]:
        words += ["--feedback", ",".join(modes)]
    if kinds != ["named"]:
        words += ["--identifiers", ",".join(kinds)]
    return command(words)
