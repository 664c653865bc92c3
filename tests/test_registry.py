"""The registry, the oracle, the checks on both, relabelling and subsets."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.typing import NDArray

from cads_env.errors import RegistryError
from cads_env.registry import (
    Oracle,
    Registry,
    SideTable,
    check_truth,
    permutation,
    prior_strata,
    relabel,
    subsample,
)

M = 40


def tiny(salt: bytes = b"") -> tuple[Registry, Oracle]:
    signal = np.linspace(-1.0, 1.0, M) + 0.01
    names = tuple(f"GENE{i}" for i in range(M))
    tables = {
        "prior": SideTable("higher = better", np.arange(M) % 7.0),
        "module": SideTable("group", np.array([f"M{i % 4}" for i in range(M)])),
    }
    registry = Registry("tiny", names, "A tiny screen.", tables)
    return registry, Oracle(signal, signal > 0, "tiny", 0, salt)


def test_identifiers_must_be_unique_and_the_repeated_one_is_named() -> None:
    with pytest.raises(RegistryError, match="repeats 1 identifiers: 'B'"):
        Registry("r", ("A", "B", "B"))


@pytest.mark.parametrize("bad", ["", "   ", None, 3])
def test_an_identifier_must_be_a_text_that_is_not_empty(bad: object) -> None:
    with pytest.raises(RegistryError, match="empty or non-text") as caught:
        Registry("r", ("A", bad, "C"))  # type: ignore[arg-type]
    assert repr((1, bad)) in str(caught.value)


def test_one_candidate_is_too_few() -> None:
    with pytest.raises(RegistryError, match="at least 2"):
        Registry("r", ("A",))


def test_a_side_table_of_another_length_is_refused_by_name() -> None:
    with pytest.raises(RegistryError, match=r"'prior' of 'r' has shape \(3,\)"):
        Registry("r", ("A", "B"), side_tables={"prior": SideTable("x", np.zeros(3))})


def test_many_offenders_are_counted_rather_than_listed() -> None:
    with pytest.raises(RegistryError, match="and 2 more"):
        Registry("r", tuple(name for name in "ABCDEFG" for _ in range(2)))


def test_a_null_with_a_positive_signal_breaks_the_null_and_is_named() -> None:
    signal = np.array([0.5, -0.5, 0.2])
    with pytest.raises(RegistryError, match="breaks the certificate's null: 'C'"):
        check_truth(signal, np.array([True, False, False]), "r", ("A", "B", "C"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_signal_must_be_finite(bad: float) -> None:
    with pytest.raises(RegistryError, match="not finite: 1"):
        Oracle(np.array([1.0, bad, -1.0]), np.array([True, True, False]))


@pytest.mark.parametrize("labels", [[True, True], [False, False]])
def test_a_registry_needs_a_hit_and_a_null(labels: list[bool]) -> None:
    with pytest.raises(RegistryError, match="at least one hit and one null"):
        Oracle(np.array([-0.1, -0.2]), np.array(labels))


def test_signal_and_labels_of_different_lengths_are_refused() -> None:
    with pytest.raises(RegistryError, match="expected the same"):
        Oracle(np.array([1.0, -1.0]), np.array([True, False, False]))


def test_a_labelled_hit_with_a_negative_signal_is_allowed_and_counted() -> None:
    oracle = Oracle(np.array([1.0, -0.3, -1.0]), np.array([True, True, False]))
    assert (oracle.hit_count, oracle.contrary_hit_count) == (2, 1)


def test_nothing_of_a_registry_or_an_oracle_can_be_written_to() -> None:
    registry, oracle = tiny()
    arrays: list[NDArray[np.generic]] = [
        registry.side_tables["prior"].values, oracle.signal, oracle.labels,
    ]  # fmt: skip
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    with pytest.raises(TypeError):
        registry.side_tables["prior"] = registry.side_tables["module"]  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        registry.name = "other"  # type: ignore[misc]


def test_changing_the_array_that_an_oracle_was_made_from_does_not_change_it() -> None:
    signal = np.array([1.0, -1.0])
    oracle = Oracle(signal, signal > 0)
    signal[0] = -5.0
    assert oracle.signal[0] == 1.0


def test_a_pickled_copy_has_the_same_hashes_and_is_immutable_too() -> None:
    registry, oracle = tiny(salt=b"s")
    copy, private = pickle.loads(pickle.dumps((registry, oracle)))
    assert (copy.hash, private.hash) == (registry.hash, oracle.hash)
    assert not copy.side_tables["prior"].values.flags.writeable
    assert not private.signal.flags.writeable


def test_the_public_hash_covers_the_public_part_and_not_the_name() -> None:
    registry, _ = tiny()
    same = Registry("x", registry.identifiers, registry.description, registry.side_tables)
    assert same.hash == registry.hash
    without = Registry("tiny", registry.identifiers, registry.description)
    reworded = Registry("tiny", registry.identifiers, "Other.", registry.side_tables)
    renamed = Registry(
        "tiny", ("X", *registry.identifiers[1:]), registry.description, registry.side_tables
    )
    assert len({r.hash for r in (registry, without, reworded, renamed)}) == 4


def test_the_private_hash_covers_signal_labels_and_the_identity_of_the_streams() -> None:
    signal = np.array([1.0, 0.0, -1.0])
    labels = np.array([True, False, False])
    oracles = [
        Oracle(signal, labels, "p", 0, b""),
        Oracle(signal * 2, labels, "p", 0, b""),
        Oracle(signal, np.array([True, True, False]), "p", 0, b""),
        Oracle(signal, labels, "q", 0, b""),
        Oracle(signal, labels, "p", 1, b""),
        Oracle(signal, labels, "p", 0, b"s"),
    ]
    assert len({oracle.hash for oracle in oracles}) == len(oracles)


def test_neither_half_prints_its_content() -> None:
    registry, oracle = tiny(salt=b"secret")
    assert "GENE1" not in repr(registry)
    assert "secret" not in repr(oracle)
    assert "0.01" not in repr(oracle)


def test_named_relabelling_changes_nothing() -> None:
    registry, oracle = tiny()
    same, private = relabel(registry, oracle, "named", 3)
    assert same is registry
    assert private is oracle


def test_shuffling_moves_effects_under_names_that_keep_their_order_and_tables() -> None:
    registry, oracle = tiny()
    shuffled, private = relabel(registry, oracle, "shuffled", 3)
    assert shuffled.hash == registry.hash
    assert private.signal.tolist() != oracle.signal.tolist()
    assert sorted(zip(private.signal, private.labels, strict=True)) == sorted(
        zip(oracle.signal, oracle.labels, strict=True)
    )
    assert relabel(registry, oracle, "shuffled", 4)[1].hash != private.hash


def test_blinded_candidates_are_opaque_codes_without_side_tables_in_another_order() -> None:
    registry, oracle = tiny()
    blind, private = relabel(registry, oracle, "blinded", 3)
    assert blind.identifiers[:2] == ("C00001", "C00002")
    assert not blind.side_tables
    assert "GENE" not in blind.description
    assert registry.description not in blind.description
    assert not np.array_equal(private.signal, oracle.signal)
    assert sorted(private.signal) == sorted(oracle.signal)
    assert np.array_equal(private.labels, private.signal > 0)


@pytest.mark.parametrize("mode", ["shuffled", "blinded", "shuffled-within-prior"])
def test_a_relabelling_depends_on_seed_and_salt(mode: str) -> None:
    def outcome(seed: int, salt: bytes) -> tuple[str, bytes]:
        public, private = relabel(*tiny(salt), mode, seed)  # type: ignore[arg-type]
        return public.hash, private.signal.tobytes()

    assert outcome(1, b"") == outcome(1, b"")
    assert len({outcome(1, b""), outcome(2, b""), outcome(1, b"s")}) == 3


def test_an_unknown_relabelling_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RegistryError, match="named, shuffled, blinded"):
        relabel(*tiny(), "renamed", 0)  # type: ignore[arg-type]


def test_a_permutation_holds_every_index_once() -> None:
    assert sorted(permutation(5, 1000)) == list(range(1000))


def test_a_subset_keeps_registry_order_and_takes_side_tables_along() -> None:
    registry, oracle = tiny()
    public, private = subsample(registry, oracle, 20, seed=4)
    kept = [registry.index[name] for name in public.identifiers]
    assert kept == sorted(set(kept))
    assert len(kept) == 20
    assert np.array_equal(private.signal, oracle.signal[kept])
    assert np.array_equal(
        public.side_tables["prior"].values, registry.side_tables["prior"].values[kept]
    )
    assert public.name == "tiny+subsample=20,subsample_seed=4"
    assert private.key("tape", 0) != oracle.key("tape", 0)


def test_subsets_differ_between_seeds() -> None:
    subsets = {subsample(*tiny(), 20, seed=seed)[0].identifiers for seed in range(5)}
    assert len(subsets) == 5


@pytest.mark.parametrize("size", [1, 41, 0, -3, 2.5, True])
def test_a_subset_of_impossible_size_is_refused(size: object) -> None:
    with pytest.raises(RegistryError, match="has 40 candidates"):
        subsample(*tiny(), size, seed=0)  # type: ignore[arg-type]


def test_shuffling_within_the_prior_moves_effects_inside_its_strata_alone() -> None:
    registry, oracle = tiny()
    public, private = relabel(registry, oracle, "shuffled-within-prior", 3)
    assert public is registry
    strata = prior_strata(registry)
    assert np.bincount(strata).tolist() == [M // 10] * 10
    assert private.signal.tolist() != oracle.signal.tolist()
    assert np.array_equal(private.labels, private.signal > 0)
    for stratum in range(10):
        inside = strata == stratum
        assert sorted(private.signal[inside]) == sorted(oracle.signal[inside])


def test_every_order_of_a_stratum_comes_up() -> None:
    registry, oracle = tiny()
    inside = np.flatnonzero(prior_strata(registry) == 4)
    orders = {
        tuple(relabel(registry, oracle, "shuffled-within-prior", seed)[1].signal[inside])
        for seed in range(400)
    }
    assert len(orders) == 24


def test_strata_rise_with_the_prior_and_ties_go_by_index() -> None:
    names = tuple(f"G{i}" for i in range(20))
    prior = [1.0] * 10 + [2.0] * 9 + [0.0]
    registry = Registry("r", names, side_tables={"prior": SideTable("p", prior)})
    expected = [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 0]
    assert prior_strata(registry).tolist() == expected


def test_strata_of_a_large_registry_are_of_about_fifty_candidates() -> None:
    m = 1_210
    tables = {"prior": SideTable("p", np.arange(m, dtype=float))}
    sizes = np.bincount(prior_strata(Registry("r", tuple(map(str, range(m))), side_tables=tables)))
    assert set(sizes.tolist()) == {50, 51}
    assert sizes.size == 24


@pytest.mark.parametrize(
    ("m", "tables", "told"),
    [
        (M, {}, "no side table 'prior' .it has: none.*prior="),
        (M, {"prior": np.array(["a"] * M)}, "no finite number for every candidate"),
        (M, {"prior": np.r_[np.nan, np.arange(M - 1)]}, "no finite number for every candidate"),
        (8, {"prior": np.arange(8.0)}, "has 8 candidates; expected at least 20"),
    ],
)
def test_a_registry_without_strata_of_a_prior_is_refused_with_the_mode_and_the_way_out(
    m: int, tables: dict[str, NDArray[np.generic]], told: str
) -> None:
    registry = Registry(
        "r",
        tuple(f"G{i}" for i in range(m)),
        side_tables={name: SideTable("", values) for name, values in tables.items()},
    )
    oracle = Oracle(np.linspace(-1, 1, m) + 0.01, np.linspace(-1, 1, m) + 0.01 > 0)
    with pytest.raises(RegistryError, match=rf"shuffled-within-prior.*{told}"):
        relabel(registry, oracle, "shuffled-within-prior", 0)
