"""The evidence of each candidate: the sum of the logs of its capped increments, in time order.

Only +, -, * and min touch a read, so that the same reads give the same bytes on every machine.
Never forms a likelihood ratio, and never looks at which candidate a read belongs to beyond its
slot.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cads_env.certificate.cap import WorkingModel, positive_cap, working_model
from cads_env.errors import ReadError, RecordError

LARGEST_READ = 1e300
"""Reads of larger magnitude are refused: no assay gives them, and their logs could overflow."""

_BLOCK_READS = 1 << 16
"""Reads worked on at once: the scratch arrays of a block stay in a core's cache."""


def log_increment(
    y: ArrayLike, cap: float, theta: float = 0.7, s: float = 0.5
) -> NDArray[np.float64]:
    """Natural log of the capped likelihood-ratio increment of each read.

    log e(y) = min(a y - b, ln C), with a = theta / s^2 and b = theta^2 / (2 s^2).

    Args:
        y: Reads, any shape; finite and at most 1e300 in magnitude.
        cap: Upper bound C of the increment, in (0, inf]; see `solve_cap`. inf means uncapped.
        theta: Working alternative, > 0.
        s: Clean standard deviation of a read, > 0.

    Returns:
        Log increments in the shape of `y`; the largest possible value is ln C.

    Raises:
        ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
        CertificateError: A parameter is outside its range.

    Source: CADS, eq. (3).
    """
    bound, model = positive_cap(cap), working_model(theta, s)
    values = read_array(y)
    check_reads(values)
    log_cap = math.log(bound) if bound < math.inf else math.inf
    return capped_log(values, model, log_cap=log_cap)


def log_evidence(
    y: ArrayLike,
    slots: ArrayLike,
    *,
    size: int,
    cap: float,
    theta: float = 0.7,
    s: float = 0.5,
) -> NDArray[np.float64]:
    """Log evidence of each candidate of one campaign, or of a batch of campaigns.

    Args:
        y: Reads in time order, shape (R,), or (n, R) for a batch.
        slots: Which candidate each read belongs to, integers in [0, size), in the shape of `y`.
        size: Number of candidates K of a campaign; those without reads get 0, which is E = 1.
        cap: Upper bound of an increment, in (0, inf]; see `solve_cap`.
        theta: Working alternative, > 0.
        s: Clean standard deviation of a read, > 0.

    Returns:
        Natural-log evidence, shape (K,) or (n, K).

    Raises:
        ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
        RecordError: Slots do not match the reads, or are outside [0, size).
        CertificateError: A parameter is outside its range.

    Source: CADS, eq. (4).
    """
    bound, model = positive_cap(cap), working_model(theta, s)
    log_cap = math.log(bound) if bound < math.inf else math.inf
    values, places = read_array(y), slot_array(slots, size)
    if values.ndim != 1 or places.ndim != 1:
        return accumulate(values, places, model, size=size, log_cap=log_cap)
    rows = accumulate(values[None], places[None], model, size=size, log_cap=log_cap)
    evidence: NDArray[np.float64] = rows[0]
    return evidence


def read_array(y: ArrayLike) -> NDArray[np.float64]:
    """The reads as float64.

    Args:
        y: Reads, any shape.

    Returns:
        The same array when it is float64 already, else a converted copy.

    Raises:
        ReadError: The reads are not real numbers.
    """
    try:
        values = np.asarray(y)
    except ValueError as error:
        msg = f"Reads are not an array: {error}. Expected rows of one length."
        raise ReadError(msg) from error
    if values.dtype.kind not in "fiu" and values.size:
        msg = (
            f"Reads are not real numbers: received an array of dtype {values.dtype}, "
            f"expected floats. Convert them with np.asarray(reads, dtype=float)."
        )
        raise ReadError(msg)
    converted: NDArray[np.float64] = values.astype(np.float64, copy=False)
    return converted


def slot_array(slots: ArrayLike, size: object) -> NDArray[Any]:
    """The slots as an array, with the number of candidates checked.

    Args:
        slots: Which candidate each read belongs to, any shape.
        size: Number of candidates of a campaign.

    Returns:
        The slots; whether they are integers in [0, size) is checked where they are used.

    Raises:
        RecordError: `size` is not a whole number from 0.
    """
    places = np.asarray(slots)
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        msg = f"size is {size!r}; expected the number of candidates, a whole number from 0."
        raise RecordError(msg)
    # An empty list has no type of its own.
    return places if places.size else places.astype(np.intp)


def check_reads(values: NDArray[np.float64], *, first_campaign: int = 0) -> None:
    """Refuse reads that no assay can give.

    Args:
        values: Reads, any shape.
        first_campaign: Added to the first coordinate of the position that a message names, for
            blocks of a larger batch.

    Raises:
        ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
    """
    # Maximum and minimum propagate NaN: two passes without a temporary array.
    if not values.size or (values.max() <= LARGEST_READ and values.min() >= -LARGEST_READ):
        return
    bad = ~(np.abs(values) <= LARGEST_READ)
    position = [int(axis) for axis in np.unravel_index(int(np.argmax(bad)), values.shape)]
    value = float(values[tuple(position)])
    if len(position) > 1:
        position[0] += first_campaign
    where = str(position[0]) if len(position) == 1 else str(tuple(position))
    msg = (
        f"A read is not usable: received {value!r} at position {where}, expected a finite number "
        f"of magnitude at most {LARGEST_READ:g}. Drop or repair failed reads before judging."
    )
    raise ReadError(msg)


def capped_log(
    values: NDArray[np.float64],
    model: WorkingModel,
    *,
    log_cap: float,
    out: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Log increments of reads that are checked already, for a cap given by its log.

    Args:
        values: Reads, any shape, checked by `check_reads`.
        model: Coefficients of the log likelihood ratio.
        log_cap: Natural log of the cap; inf means uncapped.
        out: Array of the same shape to write to; None makes one.

    Returns:
        Log increments in the shape of `values`; `out` when given.
    """
    result = np.empty(values.shape) if out is None else out
    # With theta / s^2 above 1e8 the largest reads leave the range; infinite evidence is legal.
    with np.errstate(over="ignore"):
        np.multiply(values, model.slope, out=result)
        np.subtract(result, model.shift, out=result)
    if log_cap < math.inf:
        # The minimum with the cap, in numpy's fastest form.
        np.clip(result, -math.inf, log_cap, out=result)
    return result


class RoundCaps(NamedTuple):
    """A cap for each round of each campaign of a batch."""

    log_caps: NDArray[np.float64]
    """Natural log of the cap, shape (n, T); inf means uncapped."""

    round_starts: NDArray[np.int64]
    """First read of each round and the end, shape (T + 1,)."""

    def apply(self, increments: NDArray[np.float64], first: int) -> None:
        """Cap the log increments of some campaigns in place.

        Args:
            increments: Of reads in time order, shape (rows, R).
            first: Position in the batch of the first of these campaigns.
        """
        caps = self.log_caps[first : first + len(increments)]
        starts = self.round_starts.tolist()
        for round, (start, stop) in enumerate(itertools.pairwise(starts)):
            part = increments[:, start:stop]
            np.minimum(part, caps[:, round, None], out=part)


Increments = Callable[[NDArray[np.float64], NDArray[np.float64], int], NDArray[np.float64]]
"""Log increments of a block of reads; see `sums_by_slot`."""


def capped_increments(model: WorkingModel, log_cap: float | RoundCaps) -> Increments:
    """The increments of the certificate, for `sums_by_slot`.

    Args:
        model: Coefficients of the log likelihood ratio.
        log_cap: Natural log of the cap, inf meaning uncapped; or one for each round and campaign.
    """

    def increments(
        block: NDArray[np.float64], out: NDArray[np.float64], first: int
    ) -> NDArray[np.float64]:
        if not isinstance(log_cap, RoundCaps):
            return capped_log(block, model, log_cap=log_cap, out=out)
        logs = capped_log(block, model, log_cap=math.inf, out=out)
        log_cap.apply(logs, first)
        return logs

    return increments


def accumulate(
    values: NDArray[np.float64],
    slots: NDArray[np.integer],
    model: WorkingModel,
    *,
    size: int,
    log_cap: float | RoundCaps,
) -> NDArray[np.float64]:
    """Log evidence of every candidate of every campaign of a batch, for a cap given by its log.

    A candidate's increments are added one after the other in time order, whatever the batch, so a
    campaign's row does not depend on its neighbours by a single bit.

    Args:
        values: Reads in time order, shape (n, R).
        slots: Slot of each read, integers in [0, size), shape (n, R).
        model: Coefficients of the log likelihood ratio.
        size: Number of candidates K of each campaign.
        log_cap: Natural log of the cap, inf meaning uncapped; or one for each round and campaign.

    Returns:
        Natural-log evidence, shape (n, K).

    Raises:
        ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
        RecordError: The shapes differ, or a slot is outside [0, size).
    """
    return sums_by_slot(values, slots, [capped_increments(model, log_cap)], size=size)[0]


def sums_by_slot(
    values: NDArray[np.float64],
    slots: NDArray[np.integer],
    terms: Sequence[Increments],
    *,
    size: int,
) -> list[NDArray[np.float64]]:
    """Sums over the reads of every candidate of every campaign of a batch, several at once.

    Added one after the other in time order, whatever the batch. The reads are checked and placed
    once for all sums.

    Args:
        values: Reads in time order, shape (n, R).
        slots: Slot of each read, integers in [0, size), shape (n, R).
        terms: What is summed, such as log increments; each is called with a block of checked reads
            of shape (rows, R), scratch of that shape and the position of the first campaign in the
            batch.
        size: Number of candidates K of each campaign.

    Returns:
        For each term the sums, shape (n, K); 0 for a candidate without reads.

    Raises:
        ReadError: A read is NaN, infinite or beyond 1e300; the message names the first one.
        RecordError: The shapes differ, or a slot is outside [0, size).
    """
    if values.ndim != 2 or values.shape != slots.shape:
        msg = (
            f"Reads and slots do not match: received shapes {values.shape} and {slots.shape}, "
            f"expected one slot for each read. Pass both from the same record."
        )
        raise RecordError(msg)
    _check_slots(slots, size)
    campaigns, reads = values.shape
    rows = max(1, min(campaigns, _BLOCK_READS // max(reads, 1)))
    sums = [np.empty((campaigns, size)) for _ in terms]
    scratch = np.empty((rows, reads))
    places = np.empty((rows, reads), dtype=np.intp)
    offsets = (np.arange(rows, dtype=np.intp) * size)[:, None]
    for start in range(0, campaigns, rows):
        block = values[start : start + rows]
        count = len(block)
        check_reads(block, first_campaign=start)
        flat = np.add(slots[start : start + rows], offsets[:count], out=places[:count]).ravel()
        for term, total in zip(terms, sums, strict=True):
            added = term(block, scratch[:count], start).ravel()
            # bincount walks the reads in order: a fixed, sequential sum, unlike np.sum or reduceat.
            of_block = np.bincount(flat, weights=added, minlength=count * size)
            total[start : start + rows] = of_block.reshape(count, size)
    return sums


def _check_slots(slots: NDArray[np.integer], size: int) -> None:
    """Refuse slots that would put a read on another candidate, or on another campaign."""
    if not slots.size:
        return
    if slots.dtype.kind not in "iu":
        msg = (
            f"Slots are not integers: received dtype {slots.dtype}, expected the position of each "
            f"read's candidate in `candidates`."
        )
        raise RecordError(msg)
    lowest, highest = int(slots.min()), int(slots.max())
    if lowest < 0 or highest >= size:
        msg = (
            f"A slot is outside its range: received {lowest if lowest < 0 else highest}, "
            f"expected 0 <= slot < {size}, the number of candidates. Rebuild the record."
        )
        raise RecordError(msg)
