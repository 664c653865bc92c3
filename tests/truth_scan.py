"""Searches all that is reachable from an object for a registry's signal or labels.

Follows containers, attributes, slots, closures and array bases, but not modules, classes, globals
of functions, or frames. A match is reported when chance would make it less than once in 10,000.
"""

from __future__ import annotations

import base64
import binascii
import gc
import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cads_env.registry import Oracle, Registry, SideTable

CHANCE = 1e-4
NEARLY_AFFINE = 0.999
"""Correlation from which a vector counts as affine in another; rounding does not hide a copy."""
SHORTEST_TEXT = 16
"""Shorter texts cannot hold a vector that would be reported."""

_NOT_FOLLOWED = (
    types.ModuleType, type, types.FrameType, types.TracebackType, types.CodeType,
    str, int, float, complex, bool, type(None), np.generic, np.dtype,
)  # fmt: skip
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[^\s,;:'\"()\[\]{}]+")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """What must not be found.

    Attributes:
        registry: The public half.
        oracle: The private half.
        tested: Registry indices read so far, in first-read order.
    """

    registry: Registry
    oracle: Oracle
    tested: tuple[int, ...] = ()

    @cached_property
    def orders(self) -> dict[str, Ints]:
        """Sequences of candidates with which a vector may be aligned."""
        names = self.registry.identifiers
        tested = np.array(self.tested, np.int64)
        by_name = np.argsort(np.array(names))
        return {
            "registry order": np.arange(len(names)),
            "identifier order": by_name,
            "first-read order": tested,
            "registry order of tested": np.sort(tested),
            "identifier order of tested": by_name[np.isin(by_name, tested)],
        }


def reachable(root: object) -> Iterator[object]:
    """The object and all that can be reached from it, each once."""
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        # Kept alive, so that no id is used again while the search goes on.
        seen[id(value)] = value
        yield value
        waiting.extend(_parts(value))


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, types.FunctionType):
        return [value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__]
    if isinstance(value, types.BuiltinFunctionType):
        return [value.__self__]
    if isinstance(value, np.ndarray):
        held = value.ravel().tolist() if value.dtype == object else []
        return [value.base, *held, *getattr(value, "__dict__", {}).values()]
    if isinstance(value, memoryview):
        return [value.obj]
    if isinstance(value, _NOT_FOLLOWED):
        # A subclass of a plain type may carry attributes.
        return [] if isinstance(value, type | types.ModuleType) else list(_attributes(value))
    if isinstance(value, SideTable):
        # Its array is made when asked for.
        return [*gc.get_referents(value), value.values]
    return gc.get_referents(value)


def _attributes(value: object) -> Iterable[object]:
    return getattr(value, "__dict__", {}).values()


def findings(root: object, truth: Truth) -> Iterator[str]:
    """What in the reach of an object tells the truth, in words; nothing when nothing does."""
    for value in reachable(root):
        for what in _told_by(value, truth):
            yield f"{type(value).__name__}: {what}"


def _told_by(value: object, truth: Truth) -> Iterator[str]:
    for vector in _vectors(value):
        yield from _vector_tells(vector, truth)
    for names, is_ordered in _candidate_lists(value, truth):
        yield from _list_tells(names, is_ordered, truth)
    if isinstance(value, Mapping):
        yield from _mapping_tells(value, truth)


def _vectors(value: object) -> Iterator[Floats]:
    """Every vector of numbers that an object is, holds or encodes."""
    if isinstance(value, np.ndarray):
        yield from _array_vectors(value)
    elif isinstance(value, bytes | bytearray):
        yield from _decoded(bytes(value))
    elif isinstance(value, str) and len(value) >= SHORTEST_TEXT:
        yield np.array([float(number) for number in _NUMBER.findall(value)])
        for word in _WORD.findall(value):
            if len(word) >= SHORTEST_TEXT:
                yield from _decoded(_base64(word))
    elif isinstance(value, Mapping):
        yield from _vectors(tuple(value.values()))
    elif isinstance(value, Sequence | Set) and not isinstance(value, str):
        rows = list(value)
        if rows and all(isinstance(row, tuple | list) for row in rows):
            for column in zip(*rows, strict=False):
                yield from _vectors(column)
        elif rows and all(isinstance(x, int | float | np.number | np.bool_) for x in rows):
            yield np.array([float(x) for x in rows])


def _array_vectors(array: NDArray[Any]) -> Iterator[Floats]:
    if array.dtype.names:
        for name in array.dtype.names:
            yield from _array_vectors(array[name])
    elif array.dtype.kind in "biuf":
        yield array.ravel().astype(np.float64)
        if array.ndim == 2:
            yield from array.astype(np.float64)
            yield from array.T.astype(np.float64)


def _base64(word: str) -> bytes:
    try:
        return base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _decoded(raw: bytes) -> Iterator[Floats]:
    for kind in ("<f8", ">f8", "<f4", "<i8", "u1"):
        size = np.dtype(kind).itemsize
        if raw and len(raw) % size == 0:
            with np.errstate(invalid="ignore", over="ignore"):
                yield np.frombuffer(raw, kind).astype(np.float64)
    yield np.unpackbits(np.frombuffer(raw, np.uint8)).astype(np.float64)


def _vector_tells(vector: Floats, truth: Truth) -> Iterator[str]:
    for name, order in truth.orders.items():
        if vector.size != order.size or not order.size:
            continue
        yield from _aligned_tells(vector, order, truth, name)
        if order.size == truth.registry.m and truth.tested:
            read = np.isin(order, truth.tested)
            yield from _aligned_tells(vector[read], order[read], truth, f"{name}, tested only")


def _aligned_tells(vector: Floats, at: Ints, truth: Truth, name: str) -> Iterator[str]:
    if not np.isfinite(vector).all() or np.unique(vector).size < 2:
        return
    signal, labels = truth.oracle.signal[at], truth.oracle.labels[at]
    if _chance(vector) < CHANCE:
        ordered = np.diff(vector[np.argsort(signal, kind="stable")])
        if (ordered >= 0).all() or (ordered <= 0).all():
            yield f"is monotone in the signal in {name}"
        elif abs(_correlation(vector, signal)) > NEARLY_AFFINE:
            yield f"is affine in the signal in {name}"
    if np.unique(labels).size == 2 and _chance(labels) < CHANCE:
        apart = set(vector[labels]).isdisjoint(vector[~labels])
        if apart and np.unique(vector).size == 2:
            yield f"is affine in the labels in {name}"


def _correlation(x: Floats, y: Floats) -> float:
    # Scaled first: numbers decoded from arbitrary bytes may overflow or vanish when squared.
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt((x @ x) * (y @ y))
    return float(x @ y) / size if size > 0 else 0.0


def _chance(values: NDArray[Any]) -> float:
    """Probability that values in random order come out in one given order."""
    counts = np.unique(values, return_counts=True)[1].tolist()
    log_orders = math.lgamma(values.size + 1) - sum(math.lgamma(count + 1) for count in counts)
    return math.exp(-log_orders)


def _candidate_lists(value: object, truth: Truth) -> Iterator[tuple[Ints, bool]]:
    """Lists of distinct candidates, by identifier or index, and whether their order means much."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuU" and value.ndim == 1:
        yield from _candidate_lists(value.tolist(), truth)
    elif isinstance(value, str) and len(value) >= SHORTEST_TEXT:
        index = truth.registry.index
        yield from _as_candidates([w for w in _WORD.findall(value) if w in index], True, truth)
    elif isinstance(value, Mapping):
        yield from _as_candidates(list(value), True, truth)
        yield from _as_candidates(list(value.values()), True, truth)
    elif isinstance(value, Sequence | Set) and not isinstance(value, str | bytes | bytearray):
        rows = list(value)
        if rows and all(isinstance(row, tuple | list) for row in rows):
            for column in zip(*rows, strict=False):
                yield from _as_candidates(list(column), True, truth)
        else:
            yield from _as_candidates(rows, not isinstance(value, Set), truth)


def _as_candidates(
    entries: Sequence[Any], is_ordered: bool, truth: Truth
) -> Iterator[tuple[Ints, bool]]:
    index = truth.registry.index
    if entries and all(isinstance(x, str) and x in index for x in entries):
        found = [index[x] for x in entries]
    elif entries and all(type(x) is int and 0 <= x < truth.registry.m for x in entries):
        found = list(entries)
    else:
        return
    if len(set(found)) == len(found):
        yield np.array(found, np.int64), is_ordered


def _list_tells(found: Ints, is_ordered: bool, truth: Truth) -> Iterator[str]:
    if is_ordered:
        position = np.arange(found.size, dtype=np.float64)
        yield from _aligned_tells(position, found, truth, "the order of the list")
    for name in ("registry order", "first-read order"):
        order = truth.orders[name]
        if np.isin(found, order).all():
            member = np.isin(order, found).astype(np.float64)
            yield from _aligned_tells(member, order, truth, f"membership, {name}")


def _mapping_tells(value: Mapping[Any, Any], truth: Truth) -> Iterator[str]:
    numbers = (int, float, np.number, np.bool_)
    index = truth.registry.index
    known = {k: v for k, v in value.items() if k in index and isinstance(v, numbers)}
    if known:
        at = np.array([index[name] for name in known], np.int64)
        vector = np.array([float(v) for v in known.values()])
        yield from _aligned_tells(vector, at, truth, "the mapping's keys")
