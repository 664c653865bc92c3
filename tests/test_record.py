"""Records: what they say of a campaign, their JSON form, and every way that form can be broken."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from cads_env.campaign import open_screen, play
from cads_env.errors import RecordError
from cads_env.record import FALLBACK, PROPOSER, Delivery, Record
from cads_env.testing import tiny_protocol, tiny_registry

# Two candidates first read in round 0, one in round 1, none in round 2.
TINY = Record(
    m=10,
    candidates=np.array([7, 2, 5]),
    origins=np.array([PROPOSER, FALLBACK, FALLBACK], np.int8),
    slots=np.array([0, 1, 2, 0, 0, 1], np.int32),
    values=np.array([1.0, -0.5, 0.25, 2.0, 4.5, 0.1]),
    round_starts=np.array([0, 2, 4, 6]),
)


def played(seed: int = 0) -> Record:
    return play(open_screen([tiny_registry()], [seed], tiny_protocol()), [None])[0]


def encoded(values: list[Any], dtype: str) -> str:
    return base64.b64encode(np.array(values, dtype).tobytes()).decode()


def test_counts_means_and_rounds_follow_from_the_reads() -> None:
    assert TINY.read_count == 6
    assert TINY.counts.tolist() == [3, 2, 1]
    assert TINY.means.tolist() == [2.5, -0.2, 0.25]
    assert TINY.read_rounds.tolist() == [0, 0, 1, 1, 2, 2]
    assert TINY.first_rounds.tolist() == [0, 0, 1]


def test_a_batch_gives_each_campaigns_record() -> None:
    pairs, protocol = [tiny_registry(seed=i) for i in range(3)], tiny_protocol()
    batch = play(open_screen(pairs, [0, 1, 2], protocol), [None] * 3)
    assert len(batch) == 3
    assert [record.sha256 for record in batch] == [batch[row].sha256 for row in range(3)]
    assert [len(record.deliveries) for record in batch] == [5, 5, 5]
    assert len({record.sha256 for record in batch}) == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("m", 11),
        ("candidates", np.array([7, 2, 6])),
        ("origins", np.array([1, 1, 0], np.int8)),
        ("slots", np.array([0, 1, 2, 0, 0, 2], np.int32)),
        ("values", np.nextafter(TINY.values, 9)),
        ("round_starts", np.array([0, 2, 5, 6])),
    ],
)
def test_the_hash_covers_every_array(field: str, value: Any) -> None:
    fields = {name: getattr(TINY, name) for name in Record.__slots__}
    assert Record(**{**fields, field: value}).sha256 != TINY.sha256
    assert Record(**fields).sha256 == TINY.sha256


def test_the_hash_is_frozen_and_does_not_depend_on_the_arrays_types() -> None:
    fields = {name: getattr(TINY, name) for name in Record.__slots__}
    wide = Record(**{**fields, "slots": TINY.slots.astype(np.int64)})
    assert wide.sha256 == TINY.sha256
    assert TINY.sha256 == "206a1b677c3c8668d1cd31bc8764c377796ee89c625aba781fec81833b7fa3b0"


def test_the_hash_of_the_reads_ignores_the_deliveries() -> None:
    record = played()
    fields = {name: getattr(record, name) for name in Record.__slots__}
    assert Record(**{**fields, "deliveries": ()}).sha256 == record.sha256


def test_a_record_survives_a_round_trip_through_json() -> None:
    for record in (TINY, played()):
        data = json.loads(json.dumps(record.to_json(), allow_nan=False))
        copy = Record.from_json(data)
        assert copy.sha256 == record.sha256
        assert copy.deliveries == ()
        for name in ("candidates", "origins", "slots", "values", "round_starts"):
            array = getattr(copy, name)
            assert array.dtype == getattr(record, name).dtype
            assert array.dtype.isnative
            np.testing.assert_array_equal(array, getattr(record, name))


def test_the_bytes_in_json_are_little_endian() -> None:
    data = TINY.to_json()
    assert (data["version"], data["m"]) == (1, 10)
    assert base64.b64decode(data["values"])[:8] == np.float64(1.0).astype("<f8").tobytes()
    assert base64.b64decode(data["slots"])[:8] == b"\x00\x00\x00\x00\x01\x00\x00\x00"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "schema version 2; expected 1. Read it with the cads-env that wrote it"),
        ({"version": None}, "schema version None; expected 1"),
        ({"m": 1}, "m = 1; expected a whole number of at least 2"),
        ({"m": True}, "m = True"),
        ({"m": "10"}, "m = '10'"),
        ({"m": 10.0}, "m = 10.0"),
        ({"candidates": None}, "'candidates' is not base64 of 8-byte numbers"),
        ({"values": 3}, "'values' is not base64 of 8-byte numbers"),
        ({"values": "$$$"}, "'values' is not base64 of 8-byte numbers"),
        ({"values": "äöü"}, "'values' is not base64 of 8-byte numbers"),
        ({"slots": "AAA="}, "'slots' is not base64 of 4-byte numbers"),
        ({"candidates": encoded([7, 2, 7], "<i8")}, "candidates are not distinct registry indices"),
        ({"candidates": encoded([7, 2, 10], "<i8")}, "candidates are not distinct registry indic"),
        ({"candidates": encoded([7, 2, -1], "<i8")}, "candidates are not distinct registry indice"),
        ({"candidates": ""}, "candidates are not distinct registry indices"),
        ({"origins": encoded([1, 0], "<i1")}, "origins do not match candidates"),
        ({"origins": encoded([1, 0, 2], "<i1")}, "origins do not match candidates"),
        ({"slots": encoded([0, 1, 2, 0, 0], "<i4")}, "slots do not match values"),
        ({"slots": encoded([0, 1, 1, 0, 0, 1], "<i4")}, "slots do not match values"),
        ({"slots": encoded([0, 1, 2, 0, 0, 3], "<i4")}, "slots do not match values"),
        ({"slots": encoded([0, 1, 2, 0, 0, -1], "<i4")}, "slots do not match values"),
        ({"values": encoded([1, 1, 1, 1, 1, np.nan], "<f8")}, "values are not finite"),
        ({"values": encoded([1, 1, 1, 1, 1, np.inf], "<f8")}, "values are not finite"),
        ({"round_starts": encoded([0], "<i8")}, "round starts are not increasing"),
        ({"round_starts": encoded([1, 6], "<i8")}, "round starts are not increasing"),
        ({"round_starts": encoded([0, 5], "<i8")}, "round starts are not increasing"),
        ({"round_starts": encoded([0, 4, 2, 6], "<i8")}, "round starts are not increasing"),
    ],
)
def test_a_broken_record_is_refused_with_the_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        Record.from_json(TINY.to_json() | change)


@pytest.mark.parametrize("field", sorted(TINY.to_json()))
def test_a_record_without_a_field_is_refused(field: str) -> None:
    data = TINY.to_json()
    del data[field]
    with pytest.raises(RecordError):
        Record.from_json(data)


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_what_is_no_mapping_is_no_record(data: Any) -> None:
    with pytest.raises(RecordError, match=f"Record is a {type(data).__name__}; expected a mapping"):
        Record.from_json(data)


def test_all_contradictions_of_a_record_come_in_one_error() -> None:
    data = TINY.to_json() | {
        "origins": encoded([5, 5, 5], "<i1"),
        "values": encoded([np.nan] * 6, "<f8"),
    }
    with pytest.raises(RecordError, match="origins do not match candidates; values are not finit"):
        Record.from_json(data)


def test_the_counts_of_a_delivery_are_all_its_whole_numbers() -> None:
    delivery = Delivery(fresh_slots=3, proposal_slots=2)
    whole = {name for name in Delivery.__slots__ if type(getattr(delivery, name)) is int}
    assert set(delivery.counts()) == whole
    assert delivery.counts()["fresh_slots"] == 3
