"""Leaks to plant: ways in which the truth could come to an agent, one a function or lambda.

For the tests that show that the truth barrier's checks would catch them. Never used otherwise.
"""

from __future__ import annotations

import base64
import dataclasses
import logging
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from cads_env.envs import one_screen, screen_env, vector_env
from cads_env.errors import ActionError
from cads_env.proposer import View
from cads_env.registry import Oracle, SideTable
from cads_env.run import journal as journal_module
from cads_env.run.journal import Ticket
from cads_env.run.plan import Player
from cads_env.screen import Screen

UNREAD, LABELS = "signal of unread", "labels of any"
"""What a test changes in the truth: the signal of candidates never read, or the labels of any."""

Plant = Callable[[pytest.MonkeyPatch], None]
Changer = Callable[[View, Oracle, Sequence[int]], View]


def in_views(change: Changer) -> Plant:
    """A leak in the view, computed from the oracle and the candidates read so far."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        honest = Screen._view

        def leaky(screen: Any, row: int, codes: Any) -> View:
            tested = screen._candidates[row, : screen.observed_count].tolist()
            return change(honest(screen, row, codes), screen._channel._oracles[row], tested)

        monkeypatch.setattr(Screen, "_view", leaky)

    return plant


def side_table(values: Callable[[View, Oracle], Any]) -> Plant:
    def change(view: View, oracle: Oracle, tested: Sequence[int]) -> View:
        leak = SideTable("a leak", np.asarray(values(view, oracle)))
        tables = MappingProxyType({**view.side_tables, "leak": leak})
        return dataclasses.replace(view, side_tables=tables)

    return in_views(change)


def description(text: Callable[[View, Oracle, Sequence[int]], str]) -> Plant:
    return in_views(
        lambda view, oracle, tested: dataclasses.replace(
            view, description=text(view, oracle, tested)
        )
    )


def sorted_by_name(view: View, oracle: Oracle) -> Any:
    return oracle.signal[np.argsort(np.array(view.identifiers))] / 7 - 1


def of_tested(view: View, oracle: Oracle, tested: Sequence[int]) -> str:
    return "so far " + ", ".join(f"{value:.3f}" for value in oracle.signal[list(tested)])


def encoded(view: View, oracle: Oracle, tested: Sequence[int]) -> str:
    return "see " + base64.b64encode(oracle.signal.tobytes()).decode()


class Talkative(str):
    """A text that carries something."""

    lookup: Callable[[], Any]


def with_closure(view: View, oracle: Oracle, tested: Sequence[int]) -> str:
    text = Talkative(view.description)
    text.lookup = lambda: oracle
    return text


def true_high(view: View, oracle: Oracle, tested: Sequence[int]) -> View:
    high = tuple(view.identifiers[i] for i in tested if oracle.signal[i] > 0)
    low = tuple(view.identifiers[i] for i in tested if oracle.signal[i] <= 0)
    return dataclasses.replace(view, high=high, low=low)


def ranked_low(view: View, oracle: Oracle, tested: Sequence[int]) -> View:
    rank = {view.identifiers[i]: value for i, value in enumerate(oracle.signal.tolist())}
    return dataclasses.replace(view, low=tuple(sorted(view.low, key=lambda name: rank[name])))


def true_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaky(screen: Any) -> Any:
        rows = zip(screen._channel._oracles, screen._candidates, strict=True)
        k = screen.observed_count
        return np.stack([np.where(o.labels[c[:k]], 3, 2).astype(np.int8) for o, c in rows])

    monkeypatch.setattr(Screen, "_codes", leaky)


def in_infos(module: Any, count: Callable[[Oracle, Any], int]) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        honest = module.infos

        def leaky(screen: Any) -> Any:
            notes = honest(screen)
            for note, oracle, read in zip(
                notes, screen._channel._oracles, screen._candidates, strict=True
            ):
                note["leak"] = count(oracle, read[: screen.observed_count])
            return notes

        monkeypatch.setattr(module, "infos", leaky)

    return plant


def all_hits(oracle: Oracle, read: Any) -> int:
    return oracle.hit_count


def hits_read(oracle: Oracle, read: Any) -> int:
    return int(oracle.labels[read].sum())


def in_errors(change: Callable[[ActionError, Any], None]) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        honest = screen_env.ScreenEnv.step

        def leaky(env: Any, action: object) -> Any:
            try:
                return honest(env, action)
            except ActionError as error:
                change(error, env)
                raise

        monkeypatch.setattr(screen_env.ScreenEnv, "step", leaky)

    return plant


def name_hits(error: ActionError, env: Any) -> None:
    error.args = (f"{error.args[0]} There are {env.oracle.hit_count} hits.",)


def carry_engine(error: ActionError, env: Any) -> None:
    vars(error)["screen"] = env._screen


def into_text(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = screen_env.ScreenEnv._text

    def leaky(env: Any, *state: Any) -> str:
        hits = hits_read(env.oracle, env.record.candidates)
        return f"{honest(env, *state)}{hits} hits\n"

    monkeypatch.setattr(screen_env.ScreenEnv, "_text", leaky)


def into_log(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Screen.step

    def leaky(screen: Any, answers: Any) -> None:
        logging.getLogger("cads_env").debug("%d hits", screen._channel._oracles[0].hit_count)
        honest(screen, answers)

    monkeypatch.setattr(Screen, "step", leaky)


def into_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Oracle.key

    def leaky(oracle: Oracle, stream: str, seed: int, **parts: Any) -> int:
        key = honest(oracle, stream, seed, **parts)
        return key ^ (oracle.hit_count << 32) if stream == "proposer" else key

    monkeypatch.setattr(Oracle, "key", leaky)


def in_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal from which its campaign can be reached."""
    honest = Player._play_arm

    class Told(Ticket):
        campaign: Any

    def leaky(player: Any, spec: Any, campaign: Any, journal: Any, rows: Any) -> None:
        told = Told()
        told.campaign = campaign
        journal_module._of_ticket[told] = journal
        journal.ticket = told
        honest(player, spec, campaign, journal, rows)

    monkeypatch.setattr(Player, "_play_arm", leaky)


IN_REACH: dict[str, Plant] = {
    "the signal as a side table": side_table(lambda view, oracle: oracle.signal),
    "twice the signal and one": side_table(lambda view, oracle: 2 * oracle.signal + 1),
    "the rounded signal": side_table(lambda view, oracle: np.round(oracle.signal, 1)),
    "the signal ordered by name": side_table(sorted_by_name),
    "the ranks of the signal": side_table(lambda view, oracle: np.argsort(oracle.signal)),
    "the labels as a side table": side_table(lambda view, oracle: 1 - oracle.labels),
    "the signal of tested ones in words": description(of_tested),
    "the signal encoded in text": description(encoded),
    "the oracle in a closure": description(with_closure),
    "a high list of hits": in_views(true_high),
    "a low list ordered by signal": in_views(ranked_low),
    "status codes of hits": true_status,
    "the engine on an exception": in_errors(carry_engine),
    "a journal from which its campaign is reached": in_journal,
}

IN_BYTES: dict[str, tuple[Plant, set[str]]] = {
    "a description that counts hits": (
        description(lambda view, oracle, tested: f"{oracle.hit_count} hits"),
        {UNREAD, LABELS},
    ),
    "info that counts hits": (in_infos(one_screen, all_hits), {UNREAD, LABELS}),
    "vector info that counts hits": (in_infos(vector_env, all_hits), {UNREAD, LABELS}),
    "info that counts tested hits": (in_infos(one_screen, hits_read), {LABELS}),
    "status codes of hits": (true_status, {LABELS}),
    "an error that counts hits": (in_errors(name_hits), {UNREAD, LABELS}),
    "a picture in words that counts hits": (into_text, {LABELS}),
    "a log that counts hits": (into_log, {UNREAD, LABELS}),
    "a seed made from the truth": (into_seeds, {UNREAD, LABELS}),
    "the whole signal": (IN_REACH["the signal as a side table"], {UNREAD}),
}
