"""What a user declares about a table: the options, their types and ranges.

Which options belong together depends on the file, and is checked where it is read. Never opens a
file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from cads_env.sources.declared import (
    check_choice,
    check_flag,
    check_list,
    check_number,
    check_signal,
    refuse,
)
from cads_env.sources.problems import Problems

DIRECTIONS: Final = ("lower", "higher")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What a user declares about a table.

    Attributes:
        sep: Separator; None for that of the file name's ending (.csv comma, .tsv and .txt tab).
        identifier: Column of the candidates' names.
        effect: Column of the effects, or None to leave effects aside.
        label: Column of the labels (0/1, true/false, yes/no), or None to label by the threshold. A
            column `label` that is not declared must agree with the threshold.
        direction: "lower" or "higher": which effects are hits. Needed with effects.
        threshold: Effect beyond which a candidate is a hit. Needed with effects.
        signal: u of a hit (> 0) and of a null (<= 0). Needed, and allowed, only without effects.
        description: What was screened and what a hit is, in words that a proposer reads; None for
            a plain sentence.
        prior: Column of a score, or None.
        prior_direction: "lower" or "higher": which scores are more promising. Needed with `prior`.
        module: Column of group labels, or None.
        features: Further columns to publish as side tables.
        drop_missing: Leave out candidates without an effect, and say so in the description.
    """

    sep: str | None = None
    identifier: str = "identifier"
    effect: str | None = "effect"
    label: str | None = "label"
    direction: str | None = None
    threshold: float | None = None
    signal: Sequence[float] | None = None
    description: str | None = None
    prior: str | None = None
    prior_direction: str | None = None
    module: str | None = None
    features: Sequence[str] = ()
    drop_missing: bool = False

    def __post_init__(self) -> None:
        """Check types and ranges; which options belong together depends on the file."""
        for option in ("identifier", "effect", "label", "description", "prior", "module"):
            value = getattr(self, option)
            if not isinstance(value, str) and (value is not None or option == "identifier"):
                refuse(option, value, "a text")
        for option in ("direction", "prior_direction"):
            check_choice(option, getattr(self, option), DIRECTIONS, optional=True)
        check_number("threshold", self.threshold)
        check_signal(self.signal)
        check_list("features", self.features, "column names")
        check_flag("drop_missing", self.drop_missing)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is looked at, where it is there."""
        named = (self.identifier, self.effect, self.label, self.prior, self.module, *self.features)
        return tuple(dict.fromkeys(name for name in named if name is not None))


OPTION_NAMES: Final = tuple(field.name for field in fields(TableOptions))
"""Options of `load_table` besides name, path and salt."""


def declared_options(options: Mapping[str, Any], problems: Problems) -> TableOptions:
    """The options that are usable; what is wrong with each of the others is a problem.

    Args:
        options: As the user gave them.
        problems: Where what is wrong goes.

    Raises:
        RegistryError: An option is not usable, and problems are not gathered.
    """
    usable: dict[str, Any] = {}
    for option, value in options.items():
        with problems.gathered():
            TableOptions(**{option: value})  # every check is about one option alone
            usable[option] = value
    return TableOptions(**usable)
