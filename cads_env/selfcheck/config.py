"""Sizes and thresholds of the self-check, read from YAML and checked.

No number that decides a verdict lives anywhere else. Knows no protocol and no panel.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, get_type_hints

from cads_env.errors import RunError, suggest
from cads_env.values import load_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The quality ladder and the late starters.

    Attributes:
        seeds: Campaigns.
        noise: Standard deviations of the noise on the truth, increasing; the first is 0 (perfect),
            the last infinite (random).
        late: Rounds of a campaign of `late_of` rounds from which the ranking is perfect.
        late_of: The number of rounds that `late` is written for.
    """

    seeds: int
    noise: tuple[float, ...]
    late: tuple[int, ...]
    late_of: int

    def starts(self, rounds: int) -> tuple[int, ...]:
        """First rounds of the late starters in a campaign of so many rounds; 0 is left out."""
        scaled = (start * rounds // self.late_of for start in self.late)
        return tuple(sorted({start for start in scaled if 0 < start < rounds}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """Every agent under shuffled names.

    Attributes:
        seeds: Campaigns.
    """

    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The memoriser.

    Attributes:
        train_seeds: Campaigns of the train split that the list is made from.
        eval_seeds: Campaigns of the eval split that it plays.
        own_train_seeds: Campaigns of one registry that a second list is made from.
        own_seeds: Campaigns that this list plays on the same registry, on other seeds.
    """

    train_seeds: int
    eval_seeds: int
    own_train_seeds: int
    own_seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """What feedback and names are worth, over a grid of registries.

    Attributes:
        seeds: Campaigns of a cell.
        learner: The agent that learns from feedback.
        positive_structure: The one of `structure` where the learner must net more than its twin.
        structure: Values of the generator's `structure`, increasing from 0.
        name_information: Values of the generator's `name_information`, increasing from 0.
        train_seeds: Campaigns that a cell's memoriser learns from.
    """

    seeds: int
    learner: str
    positive_structure: float
    structure: tuple[float, ...]
    name_information: tuple[float, ...]
    train_seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of it.

    Attributes:
        false_alarm: Chance that a sound protocol fails any check, in (0, 1); it is divided evenly
            over checks and over the rows of each.
        resolution: How well a net that is called 0 must be known, as a share of what perfect
            ranking is ahead of the twin.
        least_resolution: Declarations; nothing finer than this is asked for.
        least_campaigns: Fewer campaigns that are all alike decide nothing.
        tolerance: Declarations; a step down or a loss of less does not matter.
        margin: Declarations by which perfect ranking must beat random ranking.
        ladder: The quality ladder and the late starters.
        shuffled: Every agent under shuffled names.
        memory: The memoriser.
        surface: The value-of-feedback surface.
    """

    false_alarm: float
    resolution: float
    least_resolution: float
    least_campaigns: int
    tolerance: float
    margin: float
    ladder: Ladder
    shuffled: Shuffled
    memory: Memory
    surface: Surface

    def with_seeds(self, seeds: int) -> Settings:
        """The same with this many campaigns in every scene.

        Args:
            seeds: At least 2.
        """
        return dataclasses.replace(
            self,
            ladder=dataclasses.replace(self.ladder, seeds=seeds),
            shuffled=Shuffled(seeds=seeds),
            memory=Memory(
                train_seeds=seeds, eval_seeds=seeds, own_train_seeds=seeds, own_seeds=seeds
            ),
            surface=dataclasses.replace(self.surface, seeds=seeds, train_seeds=seeds),
        )

    def to_json(self) -> dict[str, Any]:
        """Every setting as JSON values; infinite noise is the text `inf`."""
        plain = dataclasses.asdict(self)
        noise = plain["ladder"]["noise"]
        plain["ladder"]["noise"] = ["inf" if math.isinf(sd) else sd for sd in noise]
        lists = {"ladder": ("late",), "surface": ("structure", "name_information")}
        for part, names in lists.items():
            for name in names:
                plain[part][name] = list(plain[part][name])
        return plain


def load_settings(changes: Mapping[str, Any] | None = None) -> Settings:
    """The settings of `cads_configs/selfcheck.yaml`.

    Args:
        changes: New values of top-level settings by name; a mapping changes fields of a part.

    Raises:
        RunError: The file cannot be read, a setting is missing, unknown or not usable.
    """
    path = resources.files("cads_configs") / "selfcheck.yaml"
    try:
        data: dict[str, Any] = load_yaml(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        msg = f"The settings of the self-check cannot be read: {error}. Install cads-env again."
        raise RunError(msg) from error
    for name, value in (changes or {}).items():
        data[name] = {**data.get(name, {}), **value} if isinstance(value, Mapping) else value
    settings: Settings = _filled(Settings, data, "the self-check")
    _check(settings)
    return settings


def _filled(kind: type[Any], data: Mapping[str, Any], what: str) -> Any:
    hints = get_type_hints(kind)
    for name in data:
        if name not in hints:
            msg = f"Settings of {what} have no {name!r}. {suggest(str(name), hints)}"
            raise RunError(msg)
    values = {}
    for name, hint in hints.items():
        if name not in data:
            msg = f"Settings of {what} lack {name!r}."
            raise RunError(msg)
        value = data[name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            values[name] = _filled(hint, value, name)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def _check(s: Settings) -> None:
    problems = [
        f"{name} is {value!r}; expected {expected}"
        for name, value, fits, expected in (
            ("false_alarm", s.false_alarm, 0 < s.false_alarm < 1, "a number between 0 and 1"),
            ("resolution", s.resolution, s.resolution > 0, "a number above 0"),
            ("tolerance", s.tolerance, s.tolerance >= 0, "a number of at least 0"),
            ("margin", s.margin, s.margin >= 0, "a number of at least 0"),
            (
                "surface.positive_structure",
                s.surface.positive_structure,
                s.surface.positive_structure in s.surface.structure[1:],
                "one of surface.structure above 0",
            ),
            ("ladder.noise", s.ladder.noise, _is_ladder(s.ladder.noise), "0, ..., .inf, rising"),
            *(
                (f"surface.{name}", values, _rises(values), "0 and more, rising")
                for name, values in (
                    ("structure", s.surface.structure),
                    ("name_information", s.surface.name_information),
                )
            ),
            *(
                (f"{part}.{name}", count, type(count) is int and count >= 2, "at least 2 campaigns")
                for part, name, count in (
                    ("ladder", "seeds", s.ladder.seeds),
                    ("shuffled", "seeds", s.shuffled.seeds),
                    ("memory", "train_seeds", s.memory.train_seeds),
                    ("memory", "eval_seeds", s.memory.eval_seeds),
                    ("memory", "own_train_seeds", s.memory.own_train_seeds),
                    ("memory", "own_seeds", s.memory.own_seeds),
                    ("surface", "seeds", s.surface.seeds),
                    ("surface", "train_seeds", s.surface.train_seeds),
                )
            ),
        )
        if not fits
    ]
    if problems:
        msg = f"Settings of the self-check are not usable: {'; '.join(problems)}."
        raise RunError(msg)


def _rises(values: tuple[float, ...]) -> bool:
    return len(values) > 0 and values[0] == 0 and list(values) == sorted(set(values))


def _is_ladder(values: tuple[float, ...]) -> bool:
    return _rises(values) and len(values) > 1 and math.isinf(values[-1])
