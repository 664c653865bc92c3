"""Truth stays behind the barrier: what an agent receives neither holds it nor depends on it.

(i) Nothing reachable from what an agent receives tells the signal or the labels. (ii) Changing the
signal of candidates that are never read, or the labels of any, changes no byte that an agent
receives before the end. Each check must catch the leaks that are planted for it.
"""

from __future__ import annotations

import dataclasses
import logging
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cads_env
from cads_env.campaign import open_screen, play
from cads_env.envs import ScreenVectorEnv, make
from cads_env.errors import ActionError, AgentError
from cads_env.panel import Panel
from cads_env.proposer import Journal, Proposal, ProposerFailed, Unrecorded, View
from cads_env.registry import Oracle, Registry, relabel
from cads_env.run.journal import Ticket
from cads_env.score import resolve_certificate
from cads_env.testing import tiny_protocol, tiny_registry
from cads_env.wrappers import IdentifierLists
from tests.envs.campaigns import action_in
from tests.planted_leaks import IN_BYTES, IN_REACH, LABELS, UNREAD
from tests.truth_scan import Truth, findings

Pair = tuple[Registry, Oracle]

# Reads so noisy that what they honestly show is far from the truth.
NOISY = tiny_protocol(rounds=8, noise_sd=2.0, epsilon=0.3)
SEED = 3
WRONG_ACTIONS: Sequence[Any] = (np.zeros(3), np.full(6, 99), [0.5] * 6)


def pair() -> Pair:
    return tiny_registry(90, 36, seed=4)


class Arm:
    """Names what reads high with its neighbours, nonsense and repeats; keeps what it receives."""

    def __init__(self, received: list[Any], **arguments: Any) -> None:
        self.received = received
        received.append(arguments)

    def propose(self, view: View) -> Proposal:
        self.received.append(view)
        number = {name: i for i, name in enumerate(view.identifiers)}
        size = len(view.identifiers)
        near = [view.identifiers[(number[name] + 1) % size] for name in view.high]
        names = ["NOBODY", *near, *view.identifiers[view.round :: 14], *near[:1]]
        return Proposal(tuple(names), raw="because", usage={"tokens": float(len(near))})


class Broken(Arm):
    """Breaks in a late round."""

    def propose(self, view: View) -> Proposal:
        if view.round == 6:
            msg = f"cannot go on after {len(view.high)} highs"
            raise KeyError(msg)
        return super().propose(view)


class Asking(Arm):
    """Asks through its journal about what it sees; keeps the journal and all that comes back."""

    def __init__(self, received: list[Any], *, seed: int, journal: Journal) -> None:
        super().__init__(received, seed=seed)
        self.journal = journal
        received.append(journal)

    def propose(self, view: View) -> Proposal:
        def fails() -> Mapping[str, Any]:
            raise ProposerFailed("down")

        for extra, answer in (("", dict), (float("nan"), dict), ("x", fails), ("y", self.again)):
            request = {"round": view.round, "seen": [*view.high, view.assay], "extra": extra}
            try:
                self.received.append(self.journal.exchange(request, answer))
            except (ProposerFailed, AgentError) as error:
                self.received.append(error)
        return super().propose(view)

    def again(self) -> Mapping[str, Any]:
        return {"inner": self.received[-1] is None}


def asking(truth: Pair) -> list[Any]:
    """What an agent with a journal receives in `evaluate`."""
    received: list[Any] = []

    def factory(*, seed: int, journal: Journal) -> Asking:
        return Asking(received, seed=seed, journal=journal)

    cads_env.evaluate(factory, registry=truth, protocol=NOISY, seeds=[SEED])
    return received


def evaluated(truth: Pair, kind: type[Arm] = Arm) -> list[Any]:
    """What an agent receives in `evaluate`, and the message when it breaks."""
    received: list[Any] = []

    def factory(**arguments: Any) -> Arm:
        return kind(received, **arguments)

    try:
        cads_env.evaluate(factory, registry=truth, protocol=NOISY, seeds=[SEED])
    except AgentError as error:
        received.append(error)
    return received


def from_environments(truth: Pair) -> Iterator[tuple[tuple[int, ...], Any]]:
    """What the environments return before the end, each with the candidates read until then."""
    for mode in ("ansi", "rgb_array"):
        env = IdentifierLists(make(truth, NOISY, render_mode=mode))
        screen: Any = env.unwrapped
        agent = Arm([])
        returned: Any = env.reset(seed=SEED)
        for _ in range(NOISY.rounds):
            tested = tuple(screen.record.candidates.tolist())
            yield tested, (returned, env.render(), screen.view)
            yield tested, refusals(env)
            names = dict.fromkeys(agent.propose(screen.view).identifiers)
            known = [name for name in names if name in truth[0].index]
            returned = env.step(screen.action_for(known[: screen.batch]))
        # Reward and info of the last step are the score.
        yield tuple(screen.record.candidates.tolist()), (returned[0], env.render())
    yield from from_vector(truth)
    yield from from_text(truth)


def from_text(truth: Pair) -> Iterator[tuple[tuple[int, ...], Any]]:
    env = make(truth, NOISY, text=True)
    screen: Any = env.unwrapped
    agent = Arm([])
    returned: Any = env.reset(seed=SEED)
    for _ in range(NOISY.rounds):
        tested = tuple(screen.record.candidates.tolist())
        yield tested, (returned, refusals(env))
        returned = env.step("\n".join(agent.propose(screen.view).identifiers))
    yield tuple(screen.record.candidates.tolist()), returned[0]


def from_vector(truth: Pair) -> Iterator[tuple[tuple[int, ...], Any]]:
    panel = Panel.resolve(truth)
    envs = ScreenVectorEnv(panel, NOISY, resolve_certificate(None, NOISY), num_envs=1)
    single = make(truth, NOISY)
    returned: Any = envs.reset(seed=SEED)
    for round in range(NOISY.rounds):
        tested = tuple(envs.get_attr("record")[0].candidates.tolist())
        yield tested, (returned, refusals(envs, lambda action: np.asarray(action)[None]))
        returned = envs.step(action_in(single, round)[None])
    yield tuple(envs.get_attr("record")[0].candidates.tolist()), returned[0]


def refusals(env: Any, shaped: Callable[[Any], Any] = lambda action: action) -> list[Exception]:
    errors: list[Exception] = []
    for action in WRONG_ACTIONS:
        try:
            env.step(shaped(action))
        except ActionError as error:
            errors.append(error)
    assert len(errors) == len(WRONG_ACTIONS)
    return errors


def scan(truth: Pair) -> Iterator[str]:
    """All that the first check finds."""
    for tested, received in from_environments(truth):
        yield from findings(received, Truth(*truth, tested))
    for received in (*evaluated(truth), *evaluated(truth, Broken), *asking(truth)):
        names = received.tested if isinstance(received, View) else ()
        tested = tuple(truth[0].index[name] for name in names)
        yield from findings(received, Truth(*truth, tested))


@contextmanager
def listening() -> Iterator[list[Any]]:
    """Log records and warnings of everything that runs inside."""
    heard: list[Any] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append((record.name, record.levelno, record.getMessage()))

    ear, root = Ear(logging.NOTSET), logging.getLogger()
    level = root.level
    root.addHandler(ear)
    root.setLevel(logging.NOTSET)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield heard
        heard += [str(warning.message) for warning in caught]
    finally:
        root.removeHandler(ear)
        root.setLevel(level)


def transcript(truth: Pair) -> list[bytes]:
    """Every byte that agents receive before the end, with the logs beside it."""
    with listening() as heard:
        received = [part for _, part in from_environments(truth)]
        arms = [*evaluated(truth), *evaluated(truth, Broken), *asking(truth)]
    return [as_bytes(part) for part in (*received, *arms, heard)]


def as_bytes(part: object) -> bytes:
    if isinstance(part, list):
        return b"".join(map(as_bytes, part))
    if isinstance(part, Unrecorded | Ticket):
        # Nothing but an address, which is another one each time.
        return type(part).__name__.encode()
    if isinstance(part, BaseException):
        chain = (part.__cause__, part.__context__)
        inner = [as_bytes(error) for error in chain if error is not None]
        state = {k: repr(v) for k, v in vars(part).items()}
        return pickle.dumps((type(part).__name__, str(part), repr(part.args), state, inner))
    return pickle.dumps(part) + repr(part).encode()


def read_by_anyone(truth: Pair) -> set[int]:
    """Candidates that any campaign of the transcript reads."""
    read: set[int] = set()
    for tested, _ in from_environments(truth):
        read.update(tested)
    record = play(open_screen([truth], [SEED], NOISY), [Arm([])])[0]
    return read.union(record.candidates.tolist())


def other_signal(truth: Pair) -> Pair:
    """Other u, and other legal labels, for every candidate that nobody reads."""
    unread = np.setdiff1d(np.arange(truth[0].m), sorted(read_by_anyone(truth)))
    signal, labels = truth[1].signal.copy(), truth[1].labels.copy()
    assert unread.size >= 12
    hits = (int(labels[unread].sum()) + unread.size // 2) % unread.size
    signal[unread] = -3.0 * np.abs(signal[unread]) - 1.0
    labels[unread] = False
    risen = unread[:hits]
    signal[risen], labels[risen] = 2.0 + np.arange(risen.size), True
    return truth[0], dataclasses.replace(truth[1], signal=signal, labels=labels)


def other_labels(truth: Pair) -> Pair:
    """Other labels, same u: no null has u > 0, and a hit may have u < 0, so more nulls are hits."""
    labels = truth[1].labels.copy()
    nulls = np.flatnonzero(~labels)
    labels[nulls[::2]] = True
    return truth[0], dataclasses.replace(truth[1], labels=labels)


CHANGES = {UNREAD: other_signal, LABELS: other_labels}


@pytest.fixture(scope="module")
def changed() -> dict[str, Pair]:
    return {name: change(pair()) for name, change in CHANGES.items()}


def tells_apart(changed: dict[str, Pair]) -> set[str]:
    """The changes of the truth that change a byte."""
    before = transcript(pair())
    return {name for name, other in changed.items() if transcript(other) != before}


def test_nothing_reachable_from_what_an_agent_receives_tells_the_truth() -> None:
    assert list(scan(pair())) == []


def test_the_same_truth_gives_the_same_bytes() -> None:
    assert transcript(pair()) == transcript(pair())


def test_changing_the_truth_changes_no_byte_before_the_end(changed: dict[str, Pair]) -> None:
    assert tells_apart(changed) == set()


def test_the_changes_of_the_truth_are_real_and_leave_every_read(changed: dict[str, Pair]) -> None:
    def reads(truth: Pair) -> str:
        return play(open_screen([truth], [SEED], NOISY), [Arm([])])[0].sha256

    for other in changed.values():
        assert other[1].hash != pair()[1].hash
        assert other[1].hit_count != pair()[1].hit_count
        assert reads(other) == reads(pair())


def test_changing_the_signal_of_a_candidate_that_is_read_does_change_bytes() -> None:
    signal = pair()[1].signal.copy()
    first = sorted(read_by_anyone(pair()))
    signal[first] = np.where(signal[first] > 0, 9.0, -9.0)
    other = (pair()[0], dataclasses.replace(pair()[1], signal=signal))
    assert tells_apart({"signal of read": other}) == {"signal of read"}


@pytest.mark.parametrize("mode", ["shuffled", "blinded", "shuffled-within-prior"])
def test_relabelled_registries_tell_no_truth(mode: Any) -> None:
    assert list(scan(relabel(*pair(), mode, 5))) == []


@pytest.mark.parametrize("feedback", ["none", "permuted"])
def test_other_feedback_tells_no_truth(feedback: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_truth_barrier.NOISY", NOISY.override(feedback=feedback))
    assert list(scan(pair())) == []


def test_the_default_environment_tells_no_truth() -> None:
    env = IdentifierLists(gym.make("CADSScreen-v0"))
    screen: Any = env.unwrapped
    returned: Any = env.reset(seed=0)
    for round in range(3):
        tested = tuple(screen.record.candidates.tolist())
        found = findings((returned, screen.view), Truth(screen.registry, screen.oracle, tested))
        assert list(found) == []
        returned = env.step(action_in(env, round))


@pytest.mark.parametrize("leak", IN_REACH)
def test_the_search_catches_a_planted_leak(leak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    IN_REACH[leak](monkeypatch)
    assert any(scan(pair()))


@pytest.mark.parametrize("leak", IN_BYTES)
def test_the_bytes_betray_a_planted_leak(
    leak: str, changed: dict[str, Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, betrayed = IN_BYTES[leak]
    plant(monkeypatch)
    assert tells_apart(changed) >= betrayed
