"""Protocols: files, names, overrides, hashes and the messages of everything that can be wrong."""

from __future__ import annotations

import dataclasses
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cads_env.errors import ProtocolError
from cads_env.protocol import (
    CertificateNumbers,
    Protocol,
    load_protocol,
    preset_names,
    protocol_from_mapping,
)
from cads_env.testing import tiny_protocol

# One other valid value for every field of a tiny protocol.
OTHER: dict[str, Any] = {
    "name": "other",
    "rounds": 6,
    "first_fresh": 7,
    "fresh": 5,
    "reread_candidates": 4,
    "reread_fraction": 0.5,
    "reads_each": 3,
    "on_exhausted": "stop",
    "rank_by": "mean",
    "graduation": False,
    "rank_epsilon_bar": 0.2,
    "rank_theta": 0.8,
    "rank_s": 0.6,
    "rank_q": 0.2,
    "feedback_proposer": "none",
    "feedback_reselection": "permuted",
    "high_above": 0.4,
    "quota": 2,
    "first_quota": 1,
    "attempts": 3,
    "fallback_priority": "round",
    "noise_sd": 0.4,
    "epsilon": 0.2,
    "law": "other-law",
    "law_options": {"low": 1.0, "high": 4.0},
    "audit_controls": 7,
    "audit_timing": "front",
    "audit_epsilon": 0.3,
    "certificate": CertificateNumbers(q=0.2),
}
# A fraction of re-reads stands instead of a number of them.
BESIDE: dict[str, dict[str, Any]] = {"reread_fraction": {"reread_candidates": 0}}
NOT_READS = {"name", "certificate"}
NOT_TWIN = {"quota", "first_quota", "attempts", "feedback_proposer"}
FIELDS = [f.name for f in dataclasses.fields(Protocol)]


def changed(field: str) -> tuple[Protocol, Protocol]:
    """A tiny protocol, and the same with that one field changed."""
    beside = BESIDE.get(field, {})
    return tiny_protocol(**beside), tiny_protocol(**beside, **{field: OTHER[field]})


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_survives_a_round_trip_through_a_file(name: str, tmp_path: Path) -> None:
    preset = load_protocol(name)
    assert preset.name == name
    path = tmp_path / "copy.yaml"
    path.write_text(preset.to_yaml(), encoding="utf-8")
    assert load_protocol(path) == preset
    assert load_protocol(str(path)).hash == preset.hash
    assert load_protocol(preset.to_dict()) == preset
    assert load_protocol(preset) is preset


@pytest.mark.parametrize("field", sorted(set(FIELDS) - {"name"}))
def test_every_override_survives_a_round_trip_through_file_and_name(
    field: str, tmp_path: Path
) -> None:
    preset = load_protocol("standard").override(**BESIDE.get(field, {}))
    protocol = preset.override(**{field: OTHER[field]})
    path = tmp_path / "copy.yaml"
    path.write_text(protocol.to_yaml(), encoding="utf-8")
    assert load_protocol(path) == protocol
    assert load_protocol(protocol.name) == protocol


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"rounds": 24}, "standard+rounds=24"),
        ({"rounds": 12}, "standard"),
        ({"epsilon": 0.2, "rounds": 24}, "standard+rounds=24+epsilon=0.2"),
        ({"quota": 5}, "standard+quota=5"),
        ({"graduation": False}, "standard+graduation=False"),
        ({"feedback": "none"}, "standard+feedback_proposer=none+feedback_reselection=none"),
        ({"epsilon": 1e-05}, "standard+epsilon=0.00001"),
        ({"law_options": {"high": 3.0, "low": 2.0}}, 'standard+law_options={"high":3.0,"low":2.0}'),
        (
            {"certificate": CertificateNumbers(q=0.05)},
            'standard+certificate={"epsilon_bar":0.1,"q":0.05,"s":0.5,"theta":0.7}',
        ),
    ],
)
def test_a_name_tells_what_was_overridden_and_loads_the_same(
    changes: dict[str, Any], name: str
) -> None:
    protocol = load_protocol("standard", **changes)
    assert protocol.name == name
    assert load_protocol(name) == protocol
    assert load_protocol(name).hash == protocol.hash


def test_a_later_override_replaces_an_earlier_one_in_the_name() -> None:
    protocol = load_protocol("standard+rounds=24+epsilon=0.2", rounds=48)
    assert protocol.name == "standard+rounds=48+epsilon=0.2"
    assert protocol.override(quota=None) is protocol
    assert load_protocol("standard+rounds=24", rounds=36).rounds == 36


def test_the_order_of_overrides_does_not_matter() -> None:
    one = load_protocol("standard").override(epsilon=0.2).override(rounds=24)
    assert one == load_protocol("standard+epsilon=0.2+rounds=24")
    assert one == load_protocol("standard", rounds=24, epsilon=0.2)


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "1.0e-3", "1.e-3", "0.001"])
def test_a_number_with_an_exponent_is_read_as_a_number(text: str) -> None:
    assert load_protocol(f"standard+epsilon={text}").epsilon == 0.001


def test_a_path_may_hold_a_plus_sign(tmp_path: Path) -> None:
    path = tmp_path / "a+b.yaml"
    path.write_text(tiny_protocol().to_yaml(), encoding="utf-8")
    assert load_protocol(path) == tiny_protocol()


def test_a_budget_multiplies_the_rounds() -> None:
    assert load_protocol("proposer").with_budget(4).name == "proposer+rounds=48"
    protocol = load_protocol("proposer")
    assert protocol.with_budget(1) is protocol


def test_a_file_may_leave_out_fields_that_have_a_default() -> None:
    short = protocol_from_mapping({"name": "s", "rounds": 2, "first_fresh": 3, "fresh": 1})
    assert short == Protocol(name="s", rounds=2, first_fresh=3, fresh=1)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("proposer", "14a04c58b1058dbe685e366ade8d40cf13989a40caf82689d1bcbb5388bf1061"),
        ("standard", "6b3b55d9193553b42184b27f4bd9b74b22ca0548baf7485459da116cbcdd2c6d"),
        ("sweep", "5583b9e94b994c2b4f8fd85cb32815bf99dc7a5ba301215183f6a0f118a9372a"),
    ],
)
def test_the_hashes_of_the_presets_are_frozen(name: str, digest: str) -> None:
    assert load_protocol(name).hash == digest


@pytest.mark.parametrize(
    ("digest", "changes"),
    [
        ("6b3b55d9193553b42184b27f4bd9b74b22ca0548baf7485459da116cbcdd2c6d", {"audit_controls": 0}),
        (
            "6b3b55d9193553b42184b27f4bd9b74b22ca0548baf7485459da116cbcdd2c6d",
            {"audit_timing": "interleaved", "audit_epsilon": None},
        ),
    ],
)
def test_a_protocol_without_controls_is_written_and_hashed_as_before_there_were_any(
    digest: str, changes: dict[str, Any]
) -> None:
    protocol = load_protocol({**load_protocol("standard").to_dict(), **changes})
    assert protocol.hash == digest
    assert not [name for name in protocol.to_dict() if "audit" in name]
    assert not protocol.audit_starts


@pytest.mark.parametrize(("controls", "rounds"), [(50, 16), (200, 16), (1000, 16), (3, 5), (5, 5)])
def test_interleaved_controls_are_split_over_the_rounds_as_numpy_splits(
    controls: int, rounds: int
) -> None:
    starts = tiny_protocol(rounds=rounds, audit_controls=controls).audit_starts
    sizes = [len(part) for part in np.array_split(np.arange(controls), rounds)]
    assert np.diff([*starts, controls]).tolist() == sizes
    assert starts[0] == 0


def test_controls_in_front_are_all_revealed_before_the_first_round() -> None:
    front = tiny_protocol(rounds=4, audit_controls=9, audit_timing="front")
    assert front.audit_starts == (9, 9, 9, 9)


def test_every_field_has_another_value_to_test_with() -> None:
    assert set(OTHER) == set(FIELDS)


@pytest.mark.parametrize("field", FIELDS)
def test_the_hash_covers_every_field_that_can_change_a_read(field: str) -> None:
    one, other = changed(field)
    assert (one.hash == other.hash) == (field in NOT_READS)


@pytest.mark.parametrize("field", FIELDS)
def test_the_twins_hash_ignores_what_binds_only_the_proposer(field: str) -> None:
    one, other = changed(field)
    assert (one.twin_hash == other.twin_hash) == (field in NOT_READS | NOT_TWIN)


def test_the_order_of_law_options_does_not_change_the_hash() -> None:
    one = tiny_protocol(law_options={"low": 2.0, "high": 3.0})
    assert one.hash == tiny_protocol(law_options={"high": 3.0, "low": 2.0}).hash


def test_a_protocol_cannot_be_changed_in_place() -> None:
    options = {"low": 1.0, "high": 2.0}
    protocol = tiny_protocol(law_options=options)
    with pytest.raises(dataclasses.FrozenInstanceError):
        protocol.rounds = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        protocol.law_options["low"] = 5.0  # type: ignore[index]
    options["low"] = 9.0
    protocol.to_dict()["law_options"]["low"] = 9.0
    assert dict(protocol.law_options) == {"low": 1.0, "high": 2.0}


@pytest.mark.parametrize("name", preset_names())
def test_a_protocol_can_be_pickled(name: str) -> None:
    protocol = load_protocol(name, rounds=3, law_options={"low": 1.0, "high": 2.0})
    copy = pickle.loads(pickle.dumps(protocol))
    assert copy == protocol
    assert copy.hash == protocol.hash
    assert isinstance(copy.certificate, CertificateNumbers)


NAN, INF = math.nan, math.inf
COUNTS = ["rounds", "first_fresh", "fresh", "reread_candidates", "reads_each", "attempts"]
LEVELS = ["rank_q"]
SHARES = ["epsilon", "rank_epsilon_bar", "reread_fraction"]
POSITIVE = ["noise_sd", "rank_theta", "rank_s"]

INVALID: list[tuple[str, Any]] = [
    *[
        (f, v)
        for f in (*COUNTS, "quota", "first_quota", "audit_controls")
        for v in (-1, 1.5, "3", True, 10**9, NAN)
    ],
    ("audit_controls", None),
    *[("audit_timing", v) for v in ("x", "Front", None, 0)],
    *[("audit_epsilon", v) for v in (-0.1, 1.1, NAN, INF, "0.1", True, [0.1])],
    *[(f, None) for f in COUNTS],
    *[(f, 0) for f in ("rounds", "first_fresh", "reads_each", "attempts")],
    *[(f, v) for f in (*LEVELS, *SHARES, *POSITIVE) for v in (-0.1, NAN, INF, "0.1", True, [0.1])],
    *[(f, 1.1) for f in (*LEVELS, *SHARES)],
    *[(f, v) for f in LEVELS for v in (0, 1)],
    *[(f, 0.0) for f in POSITIVE],
    *[(f, None) for f in (*LEVELS, "epsilon", *POSITIVE)],
    *[("high_above", v) for v in (NAN, INF, -INF, "0.35", None, False)],
    *[(f, v) for f in ("on_exhausted", "rank_by", "fallback_priority") for v in ("x", None, 1)],
    *[(f, v) for f in ("feedback_proposer", "feedback_reselection") for v in ("", "Full", None, 0)],
    *[("graduation", v) for v in (1, 0, "true", None)],
    *[("law", v) for v in ("", "  ", None, 3)],
    *[("name", v) for v in ("", "  ", None, 3)],
]


@pytest.mark.parametrize(("field", "value"), INVALID)
def test_an_invalid_value_is_refused_with_its_field_and_itself(field: str, value: Any) -> None:
    beside = BESIDE.get(field, {})
    with pytest.raises(ProtocolError) as caught:
        tiny_protocol(**beside, **{field: value})
    assert f"{field} is {value!r}; expected" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [(f, v) for f in ("epsilon_bar", "theta", "s", "q") for v in (-1, NAN, "x", True, None)]
    + [("q", 0), ("q", 1), ("theta", 0), ("s", 0), ("epsilon_bar", 1.5)],
)
def test_an_invalid_number_of_the_certificate_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        tiny_protocol(certificate={field: value})
    assert f"certificate {field} is {value!r}; expected" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", 0),
        ("epsilon", 1),
        ("epsilon", 0.0),
        ("rank_epsilon_bar", 1.0),
        ("fresh", 0),
        ("quota", 0),
        ("quota", None),
        ("first_quota", 10_000_000),
        ("high_above", -3),
        ("noise_sd", 1),
    ],
)
def test_the_ends_of_each_range_are_allowed(field: str, value: Any) -> None:
    assert getattr(tiny_protocol(**{field: value}), field) == value


def test_all_problems_come_in_one_error() -> None:
    with pytest.raises(ProtocolError) as caught:
        tiny_protocol(rounds=0, epsilon=2, law="", certificate={"q": 5}, on_exhausted="go")
    lines = str(caught.value).splitlines()
    assert lines[0] == "Protocol 'tiny' is invalid:"
    assert [line.split()[0] for line in lines[1:]] == [
        "rounds", "epsilon", "certificate", "on_exhausted", "law",
    ]  # fmt: skip


def test_a_fraction_and_a_number_of_rereads_exclude_each_other() -> None:
    with pytest.raises(ProtocolError, match="both set; expected one"):
        tiny_protocol(reread_fraction=0.5, reread_candidates=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_protocol("standrad"), "Unknown protocol 'standrad'. Did you mean 'standard'"),
        (lambda: load_protocol("zzz"), "Available: "),
        (lambda: load_protocol("standard", ronds=3), "field 'ronds'. Did you mean 'rounds'"),
        (lambda: load_protocol("standard+ronds=3"), "field 'ronds'. Did you mean 'rounds'"),
        (lambda: load_protocol("standard", name="x"), "Unknown protocol field 'name'"),
        (lambda: load_protocol("standard+rounds=24+epsilon"), "'epsilon' in .* has no value"),
        (lambda: load_protocol("standard+rounds=many"), "rounds is 'many'; expected"),
        (lambda: load_protocol("standard+rounds=2000-13-45"), "rounds is '2000-13-45'; expected"),
        (lambda: load_protocol("standard", feedback="half"), "feedback_proposer is 'half'"),
        (lambda: load_protocol(7), "A protocol is a name, a path"),  # type: ignore[arg-type]
        (lambda: load_protocol({"name": "x"}), "lacks rounds, first_fresh, fresh"),
        (lambda: load_protocol({"quotas": 1}), "unknown key 'quotas'. Did you mean 'quota'"),
        (lambda: load_protocol({3: 1}), "unknown key 3"),  # type: ignore[dict-item]
        (lambda: tiny_protocol(certificate=0.1), "certificate is 0.1; expected a mapping"),
        (lambda: tiny_protocol(certificate={"eps_bar": 0.1}), "'eps_bar'. Did you mean 'epsilon_b"),
        (lambda: load_protocol("no/such/file.yaml"), "'no/such/file.yaml' cannot be read"),
        (lambda: load_protocol({**tiny_protocol().to_dict(), "law_options": 3}), "law_options is"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(call: Any, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        call()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rounds: [", "is not valid YAML"),
        ("- a\n- b\n", "holds a list; expected a mapping"),
        ("", "holds a NoneType; expected a mapping"),
        ("name: x\nrunds: 3\n", "unknown key 'runds'. Did you mean 'rounds'"),
        ("name: x\nrounds: 2000-13-45\n", "is not valid YAML"),
        ("name: x\nrounds: 2\n", "lacks first_fresh, fresh"),
    ],
)
def test_a_faulty_file_is_refused_with_its_name(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProtocolError, match=message) as caught:
        load_protocol(path)
    assert "mine.yaml" in str(caught.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_bytes(b"\xff\xfe\x00rounds")
    with pytest.raises(ProtocolError, match="cannot be read"):
        load_protocol(path)


def test_certificate_fields_that_an_override_leaves_out_keep_the_protocols_values() -> None:
    protocol = load_protocol("standard", certificate={"q": 0.2, "theta": 0.9})
    again = protocol.override(certificate={"q": 0.05})
    assert again.certificate._asdict() == {"epsilon_bar": 0.1, "theta": 0.9, "s": 0.5, "q": 0.05}
    assert again.hash == load_protocol("standard").hash
