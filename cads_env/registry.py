"""Registry and its private oracle, relabelling and subsets.

A registry is the public half of one screen: identifiers, description, side tables. The oracle is
the private half: signal, labels and the identity from which random streams are keyed. Only the
channel and the scorer read an oracle. Nothing in a registry may equal or be affine in the oracle's
signal or labels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cads_env.errors import RegistryError
from cads_env.registry_checks import check_identifiers, check_truth
from cads_env.tape import bits, candidate_words, derive_key

RelabelMode = Literal["named", "shuffled", "blinded", "shuffled-within-prior"]
RELABEL_MODES: Final[tuple[RelabelMode, ...]] = (
    "named",
    "shuffled",
    "blinded",
    "shuffled-within-prior",
)
_FEWEST_STRATA: Final = 10
_STRATUM: Final = 50
"""Candidates of one stratum of a prior, about. Deciles would be too coarse: within the best one of
18,159 genes a good prior still orders the candidates so well that shuffling it there takes a third
of that prior's own net."""


def frozen_array(values: NDArray[Any]) -> NDArray[Any]:
    """An immutable copy: writing to it, or making it writeable again, raises."""
    values = np.ascontiguousarray(values)
    return np.frombuffer(values.tobytes(), dtype=values.dtype).reshape(values.shape)


class SideTable:
    """One public column about the candidates; immutable.

    Attributes:
        description: What the values are, with unit and orientation.
    """

    __slots__ = ("_dtype", "_raw", "description")

    def __init__(self, description: str, values: ArrayLike) -> None:
        """Keep a copy of the values.

        Args:
            description: What they are.
            values: Shape (m,), float64 or fixed-width strings, aligned with the identifiers.

        Raises:
            RegistryError: They are not one column.
        """
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "fiubU":
            msg = (
                f"A side table has shape {array.shape} and type {array.dtype}; expected one number "
                "or text a candidate."
            )
            raise RegistryError(msg)
        self.description = description
        self._raw, self._dtype = array.tobytes(), array.dtype

    @property
    def values(self) -> NDArray[Any]:
        """The values, shape (m,): a new read-only array each time, so that none is shared."""
        return np.frombuffer(self._raw, dtype=self._dtype)

    def copy(self) -> SideTable:
        """Another object over the same bytes."""
        other = SideTable.__new__(SideTable)
        other.description, other._raw, other._dtype = self.description, self._raw, self._dtype
        return other

    def __eq__(self, other: object) -> bool:
        """Whether description, type and every byte agree."""
        if not isinstance(other, SideTable):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        """By the same content."""
        return hash(self._content())

    def __repr__(self) -> str:
        """Description and type."""
        return f"SideTable({self.description!r}, {self._dtype})"

    def _content(self) -> tuple[str, str, bytes]:
        return (self.description, self._dtype.str, self._raw)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value."""
        return (SideTable, (self.description, np.array(self.values)))


@dataclass(frozen=True)
class Registry:
    """The fixed family of m candidates of one screen, as an agent may know it.

    Attributes:
        name: What tables and error messages call it.
        identifiers: The m candidates, unique and non-empty; position is the candidate's registry
            index.
        description: What was screened, in what, and what a hit is, in words that a proposer may
            read.
        side_tables: Public columns by name. By convention `prior` is a score (higher = more
            promising) and `module` is a group label.
        assay: How a candidate is measured, in words for a proposer; empty where the description
            says it.
        high_means: What it means that a candidate reads high, in words for a proposer; empty where
            nothing but "like a hit" can be said.
    """

    name: str
    identifiers: tuple[str, ...] = field(repr=False)
    description: str = field(default="", repr=False)
    side_tables: Mapping[str, SideTable] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )
    assay: str = field(default="", repr=False)
    high_means: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Check identifiers and side tables; see `check_identifiers`."""
        object.__setattr__(self, "identifiers", tuple(self.identifiers))
        object.__setattr__(self, "side_tables", MappingProxyType(dict(self.side_tables)))
        check_identifiers(self.identifiers, self.name)
        for name, table in self.side_tables.items():
            if table.values.shape != (self.m,):
                msg = (
                    f"Side table {name!r} of {self.name!r} has shape {table.values.shape}; "
                    f"expected ({self.m},), one value a candidate."
                )
                raise RegistryError(msg)

    @property
    def m(self) -> int:
        """Number of candidates: the family size of the certificate."""
        return len(self.identifiers)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Registry index by identifier."""
        return MappingProxyType({name: i for i, name in enumerate(self.identifiers)})

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the public part: identifiers, words and side tables."""
        digest = hashlib.sha256()
        _feed(digest, "cads-registry-1", self.description, *self.identifiers)
        if self.assay or self.high_means:
            _feed(digest, "words", self.assay, self.high_means)
        for name in sorted(self.side_tables):
            table = self.side_tables[name]
            _feed(digest, name, table.description, table.values.dtype.str)
            _feed_bytes(digest, table.values.tobytes())
        return digest.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the public fields (a mapping proxy cannot be pickled)."""
        tables, words = dict(self.side_tables), (self.assay, self.high_means)
        return (Registry, (self.name, self.identifiers, self.description, tables, *words))


@dataclass(frozen=True, eq=False)
class Oracle:
    """The private reference of a registry. Only the channel and the scorer touch it.

    Attributes:
        signal: u, shape (m,), in units of the effect; finite. A read's clean mean.
        labels: Shape (m,), True for a hit. A null has u <= 0.
        panel: Name of the panel or source that the registry belongs to; part of every random key.
        instance: Position in that panel; part of every random key.
        salt: Secret bytes of a private panel, empty for a public one; part of every random key.
        contrary_hit_count: Labelled hits whose u is below 0 (allowed, counted, reported).
    """

    signal: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.bool_] = field(repr=False)
    panel: str = ""
    instance: int = 0
    salt: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        """Check the signal and the labels; see `check_truth`."""
        signal = np.asarray(self.signal, np.float64)
        labels = np.asarray(self.labels, np.bool_)
        check_truth(signal, labels, self.panel or "oracle")
        object.__setattr__(self, "signal", frozen_array(signal))
        object.__setattr__(self, "labels", frozen_array(labels))

    @property
    def m(self) -> int:
        """Number of candidates."""
        return int(self.signal.size)

    @property
    def hit_count(self) -> int:
        """Number of hits."""
        return int(self.labels.sum())

    @cached_property
    def contrary_hit_count(self) -> int:
        """Labelled hits with a negative signal: no number of reads is expected to find them."""
        return int(np.count_nonzero(self.labels & (self.signal < 0)))

    def key(self, stream: str, seed: int, **parts: str | int | bytes) -> int:
        """The 64-bit key of a named random stream of this registry and campaign seed."""
        return derive_key(
            stream, panel=self.panel, instance=self.instance, salt=self.salt, seed=seed, **parts
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the private part: signal, labels, and the identity of the random streams."""
        digest = hashlib.sha256()
        _feed(digest, "cads-oracle-1", self.panel, str(self.instance))
        for raw in (self.salt, self.signal.tobytes(), self.labels.tobytes()):
            _feed_bytes(digest, raw)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether the hashes agree; the generated one fails on arrays."""
        return self.hash == other.hash if isinstance(other, Oracle) else NotImplemented

    def __hash__(self) -> int:
        """By the same hash."""
        return hash(self.hash)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value, so that a loaded copy is immutable too."""
        arrays = (np.array(self.signal), np.array(self.labels))
        return (Oracle, (*arrays, self.panel, self.instance, self.salt))


def _feed(digest: Any, *texts: str) -> None:
    # surrogatepass: an identifier may hold any code point that Python can, and must not break
    # hashing.
    _feed_bytes(digest, json.dumps(texts, ensure_ascii=True).encode())


def _feed_bytes(digest: Any, raw: bytes) -> None:
    digest.update(len(raw).to_bytes(8, "little"))
    digest.update(raw)


def relabel(
    registry: Registry, oracle: Oracle, mode: RelabelMode, seed: int
) -> tuple[Registry, Oracle]:
    """The same screen under other names, so that names tell nothing, or only what is asked.

    `shuffled`: names move among candidates, each with all its side tables, and are listed in their
    usual order. `blinded`: opaque codes, every side table dropped. In both the index order says
    nothing either, so untested candidates are exchangeable and an agent's expected net is 0.

    `shuffled-within-prior`: as `shuffled`, but names move only among about 50 candidates that are
    neighbours by the side table `prior`. How hits rise with the prior stays; what else the names
    tell of this screen is gone. named minus it is what an agent knows beyond such a prior.

    On a public panel the permutation follows from public numbers: an agent written to rebuild it
    can undo it. Only a salted panel resists that.

    Args:
        registry: The public half.
        oracle: The private half; the keys of its random streams are kept.
        mode: "named" (unchanged), "shuffled", "blinded" or "shuffled-within-prior".
        seed: Which permutation.

    Returns:
        The new pair.

    Raises:
        RegistryError: Unknown mode, or a registry whose `prior` has no strata.
    """
    if mode not in RELABEL_MODES:
        msg = f"Unknown relabelling {mode!r}; expected one of {', '.join(RELABEL_MODES)}."
        raise RegistryError(msg)
    if mode == "named":
        return registry, oracle
    order = permutation(oracle.key("relabel", seed, mode=mode), registry.m)
    if mode == "shuffled-within-prior":
        order = _within(prior_strata(registry), order)
    moved = Oracle(
        oracle.signal[order], oracle.labels[order], oracle.panel, oracle.instance, oracle.salt
    )
    if mode != "blinded":
        # Moving the effects under names that stay in their places is the same as moving the names,
        # and leaves no trace of an effect in the order of the names.
        return registry, moved
    codes = tuple(f"C{i + 1:05d}" for i in range(registry.m))
    blind = Registry(
        name=registry.name,
        identifiers=codes,
        description=f"A screen of {registry.m} candidates under opaque codes "
        "C00001, C00002, ... in random order.",
    )
    return blind, moved


def prior_strata(registry: Registry) -> NDArray[np.int64]:
    """The stratum of each candidate by the public side table `prior`, lowest 0; ties by index.

    There are m // 50 strata of neighbours by rank, at least ten.

    Args:
        registry: A registry of at least 20 candidates with a numeric side table `prior`.

    Returns:
        Shape (m,), from 0; strata differ in size by one candidate at most.

    Raises:
        RegistryError: There is no such side table, it is no finite number for every candidate, or
            there are too few candidates.
    """
    needed = "identifiers='shuffled-within-prior' moves names within strata of a public prior"
    table = registry.side_tables.get("prior")
    if table is None:
        present = ", ".join(sorted(registry.side_tables)) or "none"
        msg = (
            f"{needed}, but registry {registry.name!r} has no side table 'prior' (it has: "
            f"{present}). Declare one with prior=, choose another registry, or say 'shuffled'."
        )
        raise RegistryError(msg)
    values = table.values
    if values.dtype.kind not in "fiub" or not np.isfinite(values.astype(np.float64)).all():
        msg = (
            f"{needed}, but the side table 'prior' of {registry.name!r} is no finite number for "
            "every candidate. Fill its gaps, or say 'shuffled'."
        )
        raise RegistryError(msg)
    if registry.m < 2 * _FEWEST_STRATA:
        msg = (
            f"{needed}, but registry {registry.name!r} has {registry.m} candidates; expected at "
            f"least {2 * _FEWEST_STRATA}. Say 'shuffled'."
        )
        raise RegistryError(msg)
    rank = np.empty(registry.m, np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(registry.m)
    return rank * max(_FEWEST_STRATA, registry.m // _STRATUM) // registry.m


def _within(groups: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The permutation that moves the members of each group among themselves, as in `order`."""
    moved = np.empty_like(order)
    moved[np.argsort(groups, kind="stable")] = order[np.argsort(groups[order], kind="stable")]
    return moved


def permutation(key: int, m: int) -> NDArray[np.int64]:
    """A keyed random permutation of range(m), shape (m,)."""
    words = candidate_words(np.uint64(key), np.arange(m, dtype=np.int64))  # type: ignore[arg-type]
    return np.argsort(bits(words, np.zeros(m, np.int64), 0), kind="stable").astype(np.int64)


def subsample(registry: Registry, oracle: Oracle, size: int, seed: int) -> tuple[Registry, Oracle]:
    """A keyed random subset of the candidates, in registry order.

    Args:
        registry: The public half.
        oracle: The private half.
        size: Candidates to keep, 2 to m.
        seed: Which subset.

    Raises:
        RegistryError: `size` is out of range, or the subset has no hit or no null.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not 2 <= size <= registry.m:
        msg = f"subsample={size!r} is out of range; {registry.name!r} has {registry.m} candidates."
        raise RegistryError(msg)
    kept = np.sort(permutation(oracle.key("subsample", seed), registry.m)[:size])
    tables = {
        name: SideTable(table.description, table.values[kept])
        for name, table in registry.side_tables.items()
    }
    label = f"subsample={size},subsample_seed={seed}"
    public = replace(
        registry,
        name=f"{registry.name}+{label}",
        identifiers=tuple(registry.identifiers[i] for i in kept),
        side_tables=tables,
    )
    private = Oracle(
        oracle.signal[kept],
        oracle.labels[kept],
        f"{oracle.panel}+{label}",
        oracle.instance,
        oracle.salt,
    )
    return public, private
