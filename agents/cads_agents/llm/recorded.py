"""The chat requests that a run's traces hold, with their answers, found again by what was asked.

Reads `traces/*/*.jsonl` of a run folder, or of every run below a grid's folder. Never asks a model
and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.errors import RecordError, ReplayError, error_text, quoted

_SHOWN: Final = 30
"""Characters of a text that a message shows on either side of the first difference."""


class Recorded(NamedTuple):
    """One answered request.

    Attributes:
        request: As in the trace: `model`, `messages`, `sampling`, `round`, `attempt`, ...
        answer: As in the trace: `text`, `finish_reason`, `usage`, ..., or `overflow`.
        where: File and line.
    """

    request: Mapping[str, Any]
    answer: Mapping[str, Any]
    where: str

    @property
    def place(self) -> str:
        """Where in its campaign it was asked."""
        return f"round {self.request.get('round')}, attempt {self.request.get('attempt')}"


class Recordings:
    """The answered requests of a run.

    Attributes:
        models: Names of the models that were asked, sorted.
    """

    def __init__(self, folder: Path) -> None:
        """Read all traces.

        Args:
            folder: Of a run or a grid.

        Raises:
            RecordError: There are no traces, or a line is no exchange.
        """
        self._folder = folder
        files = sorted((*folder.glob("traces/*/*.jsonl"), *folder.glob("*/traces/*/*.jsonl")))
        self._by_messages: dict[str, list[Recorded]] = {}
        for path in files:
            for one in _exchanges(path):
                self._by_messages.setdefault(_key(one.request["messages"]), []).append(one)
        if not self._by_messages:
            msg = (
                f"{quoted(str(folder))} holds no recorded answer of a chat model; expected the "
                "folder of a run of an LLM agent, with traces/ inside."
            )
            raise RecordError(msg)
        self._all = [one for group in self._by_messages.values() for one in group]
        self.models = tuple(sorted({str(one.request.get("model")) for one in self._all}))

    def find(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        model: str,
        sampling: Mapping[str, Any],
        guided_sha256: str | None = None,
    ) -> Recorded:
        """The recorded request that is the same; the first one where several are.

        Args:
            messages: Of `role` and `content`.
            model: Its name.
            sampling: Those of `temperature`, `top_p`, `max_tokens` and `seed` that are given.
            guided_sha256: Of the candidates that a guided answer may name.

        Raises:
            ReplayError: None is; the message names the nearest and the first difference. Or several
                with different answers are, since too little of the sampling is given.
        """
        asked = {"model": model, "messages": list(messages), "sampling": dict(sampling)}
        fits = [
            one
            for one in self._by_messages.get(_key(messages), ())
            if one.request.get("model") == model
            and _agrees(one, sampling)
            and one.request.get("guided", {}).get("sha256") == guided_sha256
        ]
        if not fits:
            raise ReplayError(self._unknown(asked, guided_sha256))
        seeds = {one.request["sampling"].get("seed") for one in fits}
        if len(seeds) > 1:
            msg = (
                f"{len(fits)} recorded requests have these messages, with different seeds; "
                f"expected seed= among the arguments, such as seed={min(seeds, key=str)}."
            )
            raise ReplayError(msg)
        return fits[0]

    def _unknown(self, asked: Mapping[str, Any], guided_sha256: str | None) -> str:
        nearest = max(self._all, key=lambda one: _closeness(one, asked))
        difference = _difference(nearest.request, asked)
        if difference is None:
            recorded = nearest.request.get("guided", {}).get("sha256")
            difference = f"guided is of {recorded}, asked of {guided_sha256}"
        return (
            f"No recorded request of {self._folder} is the one now asked. Nearest: {nearest.place} "
            f"({nearest.where}); first difference: {difference}."
        )


def _exchanges(path: Path) -> Iterator[Recorded]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        msg = f"{path} cannot be read: {error_text(error)}."
        raise RecordError(msg) from error
    # What follows the last line break is empty, or a line that a kill tore.
    for number, raw in enumerate(lines[:-1], 1):
        where = f"{path.name}, line {number}"
        try:
            line = json.loads(raw)
            request, answer = line["request"], line.get("answer")
            is_chat = request.get("kind") == "chat"
            if is_chat and isinstance(answer, dict):
                _ = [(m["role"], m["content"]) for m in request["messages"]]
                request["sampling"].get("seed")
                yield Recorded(request, answer, where)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            msg = f"{path}, line {number}, is no exchange ({raw[:60]!r}...)."
            raise RecordError(msg) from error


def _key(messages: Sequence[Mapping[str, str]]) -> str:
    return json.dumps([[one["role"], one["content"]] for one in messages])


def _agrees(one: Recorded, sampling: Mapping[str, Any]) -> bool:
    recorded = one.request["sampling"]
    return all(recorded.get(name) == value for name, value in sampling.items())


def _closeness(one: Recorded, asked: Mapping[str, Any]) -> tuple[bool, bool, int]:
    # The seed is a hash of campaign, round and attempt, so it finds the place by itself.
    same_seed = one.request["sampling"].get("seed") == asked["sampling"].get("seed")
    same_model = one.request.get("model") == asked["model"]
    texts = (_key(one.request["messages"]), _key(asked["messages"]))
    return same_seed, same_model, _same_until(*texts)


def _same_until(one: str, other: str) -> int:
    """Number of characters in which two texts begin alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _difference(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    """The first difference of two requests, in words; None where there is none."""
    if recorded.get("model") != asked["model"]:
        return f"model is {quoted(recorded.get('model'))}, asked of {quoted(asked['model'])}"
    for name, value in asked["sampling"].items():
        if recorded["sampling"].get(name) != value:
            return f"sampling.{name} is {recorded['sampling'].get(name)!r}, asked with {value!r}"
    was, now = recorded["messages"], asked["messages"]
    for number, (one, other) in enumerate(zip(was, now, strict=False)):
        if one["role"] != other["role"]:
            return f"messages[{number}] is of {one['role']!r}, now of {other['role']!r}"
        if one["content"] != other["content"]:
            at = _same_until(one["content"], other["content"])
            begin, end = max(0, at - _SHOWN), at + _SHOWN
            return (
                f"messages[{number}], character {at}: {one['content'][begin:end]!r}, now "
                f"{other['content'][begin:end]!r}"
            )
    return f"{len(was)} messages, now {len(now)}" if len(was) != len(now) else None
