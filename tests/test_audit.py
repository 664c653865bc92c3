"""Controls from the protocol to the score: drawn apart, kept in the record, seen by no proposer."""

from __future__ import annotations

import base64
import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cads_env.campaign import open_screen, play
from cads_env.certificate import AuditCap, Certificate, flag_rate
from cads_env.channel import Channel, audit_reads
from cads_env.envs import ScreenVectorEnv, make
from cads_env.errors import CertificateError, RecordError
from cads_env.proposer import View
from cads_env.protocol import Protocol
from cads_env.record import Record
from cads_env.registry import Oracle, Registry
from cads_env.run import evaluate
from cads_env.score import TWINS, TwinCache, play_reference, play_twin, resolve_certificate
from cads_env.testing import tiny_protocol, tiny_registry
from cads_env.wrappers import CertificateWrapper, make_twin
from cads_env.wrappers.certificate import AUDIT_KEYS, OUTCOME_KEYS
from tests.envs.campaigns import SMALL, action_in, same, some_action, tiny_panel

PAIR = tiny_registry()
AUDITED = tiny_protocol(audit_controls=12)
CLEAN = tiny_protocol(
    rounds=8, reads_each=4, noise_sd=0.1, epsilon=0.0, audit_controls=200, audit_timing="front",
    rank_epsilon_bar=0.2,
)  # fmt: skip
"""Quiet reads and many controls in front, so that several candidates are declared."""


def record_of(protocol: Protocol, seed: int = 3, pair: tuple[Registry, Oracle] = PAIR) -> Record:
    return play(open_screen([pair], [seed], protocol), [None])[0]


def controls(count: int, **changes: Any) -> NDArray[np.float64]:
    """Controls of 20 campaigns that nobody plays."""
    protocol = tiny_protocol(audit_controls=count, **changes)
    return audit_reads([PAIR[1]] * 20, range(20), protocol)


@pytest.mark.parametrize("noise_sd", [0.25, 1.0])
def test_a_clean_control_is_noise_around_zero(noise_sd: float) -> None:
    z = controls(500, epsilon=0.0, noise_sd=noise_sd).reshape(-1) / noise_sd
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert len(set(z.tolist())) == 10_000


def test_controls_pass_the_protocols_law_at_its_rate() -> None:
    clean, dirty = controls(500, epsilon=0.0), controls(500, epsilon=0.2)
    added = (dirty - clean)[dirty != clean]
    assert stats.binomtest(added.size, 10_000, 0.2).pvalue > 1e-3
    assert stats.kstest((added - 2.0) / 2.0, "uniform").pvalue > 1e-3
    flags = int(AuditCap().flags(dirty).sum())
    assert stats.binomtest(flags, 10_000, flag_rate(0.2)).pvalue > 1e-3


def test_the_rate_of_the_controls_may_be_another_than_that_of_the_reads() -> None:
    own = controls(200, epsilon=0.1, audit_epsilon=0.3)
    assert own.tobytes() == controls(200, epsilon=0.3).tobytes()
    assert own.tobytes() != controls(200, epsilon=0.1).tobytes()
    changed = tiny_protocol(audit_controls=12, audit_epsilon=0.9)
    assert record_of(changed).values.tobytes() == record_of(AUDITED).values.tobytes()


def test_a_smaller_audit_is_the_beginning_of_a_larger_one() -> None:
    large = controls(200)
    for count in (1, 50, 199):
        assert controls(count).tobytes() == large[:, :count].tobytes()
    assert controls(200, audit_timing="front").tobytes() == large.tobytes()
    assert controls(0).shape == (20, 0)


def test_controls_of_campaigns_and_registries_are_their_own() -> None:
    reads = controls(3)
    other = audit_reads([tiny_registry(seed=1)[1]], [0], AUDITED)
    tape = record_of(tiny_protocol(epsilon=0.0), seed=0)
    assert np.unique(np.concatenate([reads.reshape(-1), other[0], tape.values])).size == (
        reads.size + 12 + tape.read_count
    )


def test_controls_of_a_campaign_do_not_depend_on_its_batch_or_its_state() -> None:
    together = audit_reads([PAIR[1]] * 3, [4, 5, 6], AUDITED)
    alone = Channel([PAIR[1]], [5], AUDITED).audit_reads()
    assert together[1].tobytes() == alone[0].tobytes()
    assert record_of(AUDITED, 5).audit_values.tobytes() == alone[0].tobytes()


class Rounds:
    """A law that delivers the round it was told, and what it saw of a control."""

    def contaminate(self, batch: Any) -> NDArray[np.float64]:
        assert not batch.signal.any()
        assert not batch.visits.any()
        assert batch.past_reads(0).size == 0
        assert batch.candidate_table.shape == (2, 12)
        reads: NDArray[np.float64] = 1000.0 * batch.round + 100.0 * batch.rows + batch.candidates
        return reads


@pytest.mark.parametrize("timing", ["interleaved", "front"])
def test_a_law_is_told_the_round_campaign_and_number_of_each_control(
    timing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cads_env.channel.law_of", lambda *_, **__: Rounds())
    protocol = tiny_protocol(audit_controls=12, audit_timing=timing)
    reads = Channel([PAIR[1]] * 2, [0, 1], protocol).audit_reads()
    rounds = np.zeros(12) if timing == "front" else np.repeat(np.arange(5), [3, 3, 2, 2, 2])
    assert reads.tolist() == [
        (1000 * rounds + 100 * row + np.arange(12)).tolist() for row in (0, 1)
    ]


def test_controls_change_no_read_and_are_kept_apart_from_them() -> None:
    audited, bare = record_of(AUDITED), record_of(tiny_protocol())
    for name in ("candidates", "origins", "slots", "values", "round_starts"):
        assert getattr(audited, name).tobytes() == getattr(bare, name).tobytes()
    assert audited.deliveries == bare.deliveries
    assert audited.read_count == bare.read_count
    assert audited.audit_values.shape == (12,)
    assert audited.audit_starts.tolist() == [0, 3, 6, 8, 10]
    assert (bare.audit_values.size, bare.audit_starts.size) == (0, 0)
    assert (audited.is_audited, bare.is_audited) == (True, False)
    assert audited.sha256 != bare.sha256


def test_a_record_before_the_end_holds_only_the_controls_revealed_so_far() -> None:
    for timing, seen in (("interleaved", [0, 3, 6, 8, 10, 12]), ("front", [12] * 6)):
        screen = open_screen([PAIR], [3], tiny_protocol(audit_controls=12, audit_timing=timing))
        found = []
        while True:
            record = screen.records()[0]
            found.append(record.audit_values.size)
            assert record.audit_starts.tolist() == seen[:5][: screen.round]
            if screen.is_done:
                break
            screen.step([None])
        assert found == seen


def test_a_record_with_controls_survives_json_and_one_without_is_written_as_before() -> None:
    record, bare = record_of(AUDITED), record_of(tiny_protocol())
    data = json.loads(json.dumps(record.to_json()))
    back = Record.from_json(data)
    assert back.sha256 == record.sha256
    assert back.audit_values.tobytes() == record.audit_values.tobytes()
    assert set(data) - set(bare.to_json()) == {"audit_values", "audit_starts"}
    values = np.frombuffer(base64.b64decode(data["audit_values"]), "<f8").copy()
    values[4] += 1.0
    data["audit_values"] = base64.b64encode(values.tobytes()).decode()
    assert Record.from_json(data).sha256 != record.sha256


def encoded(values: Any, dtype: str) -> str:
    return base64.b64encode(np.array(values, dtype).tobytes()).decode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"audit_values": None}, "'audit_values' is not base64 of 8-byte numbers"),
        ({"audit_starts": "x"}, "'audit_starts' is not base64 of 8-byte numbers"),
        ({"audit_starts": ""}, "'audit_starts' is empty; expected one number a round"),
        ({"audit_values": encoded([np.nan] * 12, "<f8")}, "audit values are not finite"),
        ({"audit_starts": encoded([0, 3, 6, 8], "<i8")}, "audit starts are not one number a round"),
        ({"audit_starts": encoded([0, 3, 6, 8, 13], "<i8")}, "audit starts are not one number"),
        ({"audit_starts": encoded([0, 3, 2, 8, 10], "<i8")}, "audit starts are not one number"),
        ({"audit_starts": encoded([-1, 3, 6, 8, 10], "<i8")}, "audit starts are not one number"),
    ],
)
def test_broken_controls_of_a_record_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        Record.from_json(record_of(AUDITED).to_json() | change)


@pytest.mark.parametrize("field", ["audit_values", "audit_starts"])
def test_half_an_audit_is_no_record(field: str) -> None:
    data = record_of(AUDITED).to_json()
    del data[field]
    with pytest.raises(RecordError, match=field):
        Record.from_json(data)


class Watching:
    """Keeps every view, and proposes by what it sees."""

    def __init__(self) -> None:
        self.views: list[View] = []

    def propose(self, view: View) -> list[str]:
        self.views.append(view)
        return [*view.high, *view.identifiers[-view.slots - len(view.high) :]]


def test_no_view_differs_by_controls_their_number_or_what_they_say() -> None:
    seen: list[list[Any]] = []
    for changes in (
        {},
        {"audit_controls": 12},
        {"audit_controls": 40, "audit_timing": "front"},
        {"audit_controls": 40, "audit_epsilon": 1.0},
    ):
        watching = Watching()
        play(open_screen([PAIR], [3], tiny_protocol(**changes)), [watching])
        names = sorted(set(View.__slots__) - {"side_tables"})
        seen.append([tuple(getattr(view, n) for n in names) for view in watching.views])
        assert all(view.side_tables.keys() == PAIR[0].side_tables.keys() for view in watching.views)
    assert all(views == seen[0] for views in seen)


def test_an_environment_shows_nothing_of_its_controls_before_the_end() -> None:
    returned = []
    for changes in ({}, {"audit_epsilon": 1.0, "audit": True}, {"audit_controls": 3}):
        protocol = tiny_protocol(audit_controls=12)
        env = make(tiny_panel(), protocol, **changes)
        steps: list[Any] = [env.reset(seed=2)]
        for round in range(4):
            steps.append(env.step(action_in(env, round)))
        # The audit's own keys are there from the start and say nothing.
        assert all(info.pop(key, 0) == 0 for *_, info in steps for key in AUDIT_KEYS)
        returned.append(steps)
    assert same(returned[0], returned[1])
    assert same(returned[0], returned[2])


def test_arm_twin_and_reference_share_their_controls() -> None:
    twin = play_twin(*PAIR, AUDITED, 3)
    arm = play(open_screen([PAIR], [3], AUDITED), [Watching()])[0]
    reference = play_reference(*PAIR, AUDITED, 3)
    assert arm.values.tobytes() != twin.values.tobytes()
    for record in (arm, reference):
        assert record.audit_values.tobytes() == twin.audit_values.tobytes()
    audit = Certificate(audit=AuditCap())
    caps = [audit.round_log_caps(record).tobytes() for record in (arm, twin, reference)]
    assert len(set(caps)) == 1


def test_twins_of_other_controls_are_cached_apart() -> None:
    cache = TwinCache()
    bare, audited = (cache.get(*PAIR, p, 3) for p in (tiny_protocol(), AUDITED))
    assert audited.audit_values.size == 12
    assert bare.audit_values.size == 0
    assert cache.get(*PAIR, AUDITED.override(quota=1), 3) is audited


def test_engine_environments_and_evaluate_agree_on_every_outcome() -> None:
    judge = resolve_certificate({"audit": True, "q": 0.3}, CLEAN)
    env = make(tiny_panel(), CLEAN, certificate=judge)
    single = []
    for seed in range(4):
        env.reset(seed=seed)
        info: dict[str, Any] = {}
        for round in range(8):
            info = env.step(action_in(env, round, key=seed))[4]
        single.append({key: info[key] for key in OUTCOME_KEYS})
    vector = ScreenVectorEnv(tiny_panel(), CLEAN, judge, num_envs=4)
    vector.reset(seed=0)
    notes: dict[str, Any] = {}
    for round in range(8):
        actions = [some_action(vector.batch, vector.m, 1000 * seed + round) for seed in range(4)]
        notes = vector.step(np.stack(actions))[4]
    for seed in range(4):
        assert {key: int(notes[key][seed]) for key in OUTCOME_KEYS} == single[seed]
    assert sum(outcome["true"] for outcome in single) > 0
    assert any(outcome["net"] for outcome in single)
    result = evaluate(
        "nothing", registry=tiny_panel(), protocol=CLEAN, certificate=judge, seeds=range(4)
    )
    assert result.campaigns["true"].tolist() == [o["twin_true"] for o in single]
    bounds = [judge.audit_outcome(TWINS.get(*tiny_panel()[seed], CLEAN, seed)) for seed in range(4)]
    assert result.campaigns["audit_bound"].tolist() == [b.final_bound for b in bounds]
    assert result.campaigns["audit_flags"].tolist() == [b.flag_count for b in bounds]


def test_environments_are_made_by_name_and_their_spec_stays_json() -> None:
    env = gym.make(
        "CADSScreen-v0", registry=SMALL, audit_controls=20, audit={"tau": 1.0, "Delta": 2.5}
    )
    spec = env.spec
    assert spec is not None
    again = gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))
    for made in (env, again):
        certificate = made.get_wrapper_attr("certificate")
        assert certificate.audit == AuditCap(Delta=2.5)
        assert made.get_wrapper_attr("protocol").audit_controls == 20
    vector: Any = gym.make_vec(
        "CADSScreen-v0", num_envs=2, registry=SMALL, audit_controls=20, audit=True
    )
    assert vector.certificate.audit == AuditCap()


def test_a_second_wrapper_judges_the_same_record_by_its_controls() -> None:
    env = make(tiny_panel(), CLEAN, q=0.3)
    audited = CertificateWrapper(env, audit={"delta": 0.05})
    assert audited.certificate == Certificate(q=0.3, audit=AuditCap(delta=0.05))
    stricter = CertificateWrapper(audited, q=0.2)
    assert stricter.certificate == Certificate(q=0.2, audit=AuditCap(delta=0.05))
    assert CertificateWrapper(audited, audit=None).certificate == Certificate(q=0.3)
    twin: Any = make_twin(audited)
    assert twin.certificate == audited.certificate
    twin.reset(seed=1)
    for _ in range(8):
        info = twin.step(twin.action_space.sample())[4]
    assert (info["scored"], info["net"]) == (True, 0)


def test_an_audit_without_controls_is_refused_before_the_first_read() -> None:
    message = r"has an audit and the protocol 'tiny' no controls. Set audit_controls"
    with pytest.raises(CertificateError, match=message):
        make(tiny_panel(), tiny_protocol(), audit=True)
    with pytest.raises(CertificateError, match=message):
        evaluate("nothing", registry=PAIR, protocol=tiny_protocol(), certificate={"audit": True})
    with pytest.raises(CertificateError, match=message):
        resolve_certificate(Certificate(audit=AuditCap()), tiny_protocol())
    with pytest.raises(CertificateError, match=r"audit is a AuditCap; gym.make takes a mapping"):
        gym.make("CADSScreen-v0", registry=SMALL, audit_controls=3, audit=AuditCap())


def test_the_info_of_an_audited_environment_tells_of_its_audit_at_the_end() -> None:
    env = make(tiny_panel(), tiny_protocol(audit_controls=12), audit=True)
    _, first = env.reset(seed=2)
    terminated = False
    while not terminated:
        *_, terminated, _, info = env.step(action_in(env, 0))
    assert list(info) == list(first)
    assert 0 <= info["audit_flags"] <= 12
    assert 0 < info["audit_bound"] <= 1
    assert first["audit_bound"] == 0.0
