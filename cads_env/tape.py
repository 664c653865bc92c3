"""Random numbers as pure functions of (key, candidate, visit): the tape.

A read's numbers depend on nothing but the campaign's key, the candidate and how often it was read
before, so two arms of one campaign share every read they have in common. Everything here is integer
hashing and correctly rounded arithmetic (+ - * / sqrt), so the values are equal in every byte on
every CPU. Frozen: a changed value needs a new `VERSION`. Never imports numpy.random, and never sees
an effect or a label.
"""

from __future__ import annotations

import hashlib
import operator
from typing import Final

import numpy as np
from numpy.typing import NDArray

VERSION: Final = "cads-tape-1"
"""Part of every key: another version shares no number with this one."""

WORDS_PER_VISIT: Final = 4
"""Outputs reserved for one read: 0 normal and coin, 1 the coin's ties, 2 and 3 a law's own."""

UInt64s = NDArray[np.uint64]
Float64s = NDArray[np.float64]

_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_CANDIDATE_STEP: Final = np.uint64(0xD1342543DE82EF95)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_MASK_64: Final = (1 << 64) - 1
_VISIT_STEP: Final = np.uint64(WORDS_PER_VISIT * 0x9E3779B97F4A7C15 & _MASK_64)
_LOW_BITS: Final = np.uint64(0xFFF)
_SLOT_STEPS: Final = tuple(
    np.uint64((slot + 1) * 0x9E3779B97F4A7C15 & _MASK_64) for slot in range(WORDS_PER_VISIT)
)
_SORTED_UP_TO: Final = 1024
_FEISTEL_STEPS: Final = 8
# Long enough that numpy's call overhead fades, short enough that a core's cache holds a block.
_BLOCK: Final = 32768


def derive_key(stream: str, **parts: str | int | bytes) -> int:
    """The 64-bit key of a named stream.

    Args:
        stream: What the numbers are for, e.g. "tape" or "priority".
        **parts: What the stream depends on, by name (panel, instance, salt, seed, ...). Integers
            may be of any size.

    Returns:
        An integer in [0, 2**64), a BLAKE2b digest of the version, the stream and the named parts.
    """
    digest = hashlib.blake2b(digest_size=8, person=b"cads-env")
    for name, value in (("version", VERSION), ("stream", stream), *sorted(parts.items())):
        kind = "bytes" if isinstance(value, bytes) else "str" if isinstance(value, str) else "int"
        # A number of numpy gives the key of the same Python int.
        plain = operator.index(value) if kind == "int" else value  # type: ignore[arg-type]
        raw = plain if isinstance(plain, bytes) else str(plain).encode()
        digest.update(f"{name}:{kind}:{len(raw)}:".encode())
        digest.update(raw)
    return int.from_bytes(digest.digest(), "little")


def mix(words: UInt64s, scratch: UInt64s | None = None) -> UInt64s:
    """Scramble 64-bit words in place by the SplitMix64 finaliser, a bijection.

    Args:
        words: Any shape; overwritten.
        scratch: Work space of the same shape, or None to allocate it.

    Returns:
        `words`.
    """
    if scratch is None:
        scratch = np.empty_like(words)
    for shift, factor in ((30, _MIX_1), (27, _MIX_2)):
        np.right_shift(words, np.uint64(shift), out=scratch)
        np.bitwise_xor(words, scratch, out=words)
        np.multiply(words, factor, out=words)
    np.right_shift(words, np.uint64(31), out=scratch)
    np.bitwise_xor(words, scratch, out=words)
    return words


def candidate_words(keys: UInt64s, candidates: NDArray[np.int64]) -> UInt64s:
    """The word of each candidate under a key: the state from which its reads are drawn.

    Args:
        keys: Broadcastable against `candidates`.
        candidates: Registry indices.

    Returns:
        Words of the broadcast shape.
    """
    words = (candidates.astype(np.uint64) + np.uint64(1)) * _CANDIDATE_STEP + keys
    return mix(words)


def visit_states(words: UInt64s, visits: NDArray[np.int64]) -> UInt64s:
    """The state of each (candidate word, visit), from which `scrambled` draws its slots.

    Args:
        words: From `candidate_words`, shape (r,).
        visits: How often each candidate was read before, shape (r,), counting from 0.

    Returns:
        Shape (r,), a new array.
    """
    states = np.multiply(visits.view(np.uint64), _VISIT_STEP)
    np.add(states, words, out=states)
    return states


def scrambled(states: UInt64s, slot: int) -> UInt64s:
    """64 random bits for slot `slot` of each state: output `slot` of SplitMix64 from there.

    Args:
        states: From `visit_states`, any shape.
        slot: 0 to `WORDS_PER_VISIT` - 1.

    Returns:
        The same shape, a new array.
    """
    return mix(states + _SLOT_STEPS[slot])


def bits(words: UInt64s, visits: NDArray[np.int64], slot: int) -> UInt64s:
    """64 random bits for slot `slot` of each (candidate word, visit).

    With visits = 0 and slot = j this is output j of SplitMix64 seeded with the word.

    Args:
        words: From `candidate_words`, shape (r,).
        visits: How often each candidate was read before, shape (r,), counting from 0.
        slot: 0 to `WORDS_PER_VISIT` - 1.

    Returns:
        Shape (r,).
    """
    return scrambled(visit_states(words, visits), slot)


def uniforms(random_bits: UInt64s) -> Float64s:
    """Uniform numbers in [0, 1), multiples of 2**-53, from 64 random bits each."""
    return (random_bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def coin_bits(random_bits: UInt64s) -> NDArray[np.uint16]:
    """The 12 bits of slot 0 that its normal leaves over, shape (r,)."""
    return (random_bits & _LOW_BITS).astype(np.uint16)


def coins(first_bits: NDArray[np.uint16], states: UInt64s, probability: float) -> NDArray[np.int64]:
    """Positions of the reads whose contamination coin falls below `probability`.

    The coin's first 12 bits are those that the normal leaves over; where they tie with the
    threshold's, slot 1 gives the next 64.

    Args:
        first_bits: From `coin_bits`, shape (r,).
        states: From `visit_states`, shape (r,).
        probability: In [0, 1]; exact to 2**-64.

    Returns:
        Ascending positions, shape (k,).
    """
    threshold = int(probability * 2.0**76)
    first, rest = threshold >> 64, threshold & _MASK_64
    if first > _LOW_BITS:
        return np.arange(first_bits.size)
    at = np.flatnonzero(first_bits <= first)
    tied = np.flatnonzero(first_bits.take(at) == first)
    lost = scrambled(states.take(at.take(tied)), 1) >= np.uint64(rest)
    kept = np.ones(at.size, np.bool_)
    kept[tied[lost]] = False
    return at[kept]


def coins_each(
    first_bits: NDArray[np.uint16], states: UInt64s, probabilities: Float64s
) -> NDArray[np.int64]:
    """Positions of the reads whose contamination coin falls below their own probability.

    The same coins as those of `coins`, with which it agrees where the probability is constant.

    Args:
        first_bits: From `coin_bits`, shape (r,).
        states: From `visit_states`, shape (r,).
        probabilities: In [0, 1], shape (r,); exact to 2**-64.

    Returns:
        Ascending positions, shape (k,).
    """
    # Scaling by a power of two, floor and the difference are exact.
    scaled = probabilities * 4096.0
    first = np.floor(scaled)
    below = first_bits < first
    tied = np.flatnonzero(first_bits == first)
    rest = ((scaled.take(tied) - first.take(tied)) * 2.0**64).astype(np.uint64)
    below[tied] = scrambled(states.take(tied), 1) < rest
    return np.flatnonzero(below)


def normals(random_bits: UInt64s, out: Float64s | None = None) -> Float64s:
    """Standard normal numbers by inversion of the top 52 bits (algorithm AS 241, PPND16).

    Args:
        random_bits: Shape (r,), contiguous; used as work space and overwritten.
        out: Where to write, shape (r,), or None to allocate.

    Returns:
        Shape (r,), relative accuracy about 1e-16, symmetric about 0, largest magnitude 8.2.

    Source: Wichura (1988), Applied Statistics 37(3), algorithm AS 241. The logarithm is our own,
    since libraries' logarithms differ between CPUs in the last bit.
    """
    if out is None:
        out = np.empty(random_bits.shape, np.float64)
    for start in range(0, random_bits.size, _BLOCK):
        stop = start + _BLOCK
        block = random_bits[start:stop]
        centred = out[start:stop]
        # (k + 1/2) * 2**-52 - 1/2 is exact, and so is its distance from either end.
        np.right_shift(block, np.uint64(12), out=block)
        # Numbers below 2**52 are the same unsigned and signed; only the signed convert fast.
        np.copyto(centred, block.view(np.int64))
        np.subtract(centred, 2.0**51 - 0.5, out=centred)
        np.multiply(centred, 2.0**-52, out=centred)
        _invert_normal(centred)
    return out


def normal_quantile(p: Float64s) -> Float64s:
    """Standard normal quantile of each probability, by the tape's own arithmetic.

    Args:
        p: Probabilities in [2**-53, 1); a quantile is that of 1/2 + (p - 1/2), so only multiples of
            2**-53 lose nothing by rounding.

    Returns:
        Quantiles of the same shape.
    """
    centred = np.asarray(p, np.float64) - 0.5
    flat = np.ascontiguousarray(centred).reshape(-1)
    _invert_normal(flat)
    return flat.reshape(centred.shape)


# Numerators and denominators of AS 241's three rational approximations, highest power first.
_CENTRE_NUM: Final = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
    4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
    1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
_CENTRE_DEN: Final = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
    2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
    4.2313330701600911252e1, 1.0,
)  # fmt: skip
_TAIL_NUM: Final = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
    1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
    4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
_TAIL_DEN: Final = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
    1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
    2.05319162663775882187e0, 1.0,
)  # fmt: skip
_FAR_NUM: Final = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
    2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
    5.46378491116411436990e0, 6.65790464350110377720e0,
)  # fmt: skip
_FAR_DEN: Final = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
    7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
    5.99832206555887937690e-1, 1.0,
)  # fmt: skip
_LOG_SERIES: Final = tuple(1.0 / (2 * k + 1) for k in range(9, 0, -1))
_LN2: Final = 0.6931471805599453
_SQRT_HALF: Final = 0.7071067811865476


_CENTRE: Final = (_CENTRE_NUM, _CENTRE_DEN)
_TAIL: Final = (_TAIL_NUM, _TAIL_DEN)
_FAR: Final = (_FAR_NUM, _FAR_DEN)


def _polynomial(x: Float64s, coefficients: tuple[float, ...]) -> Float64s:
    """A polynomial in x by Horner's rule, highest power first."""
    value = np.multiply(x, coefficients[0])
    np.add(value, coefficients[1], out=value)
    for coefficient in coefficients[2:]:
        np.multiply(value, x, out=value)
        np.add(value, coefficient, out=value)
    return value


def _rational(x: Float64s, of: tuple[tuple[float, ...], ...]) -> Float64s:
    """The quotient of two polynomials in x."""
    numerator = _polynomial(x, of[0])
    quotient: Float64s = np.divide(numerator, _polynomial(x, of[1]), out=numerator)
    return quotient


def _invert_normal(centred: Float64s) -> None:
    """Replace p - 1/2 by the normal quantile of p, in place."""
    square = np.multiply(centred, centred)
    np.subtract(0.180625, square, out=square)
    tail_at = np.flatnonzero(square < 0.0)
    tail = centred.take(tail_at)
    np.multiply(centred, _rational(square, _CENTRE), out=centred)
    if tail_at.size:
        centred[tail_at] = np.copysign(_tail_quantile(0.5 - np.abs(tail)), tail)


def _tail_quantile(p: Float64s) -> Float64s:
    """Magnitude of the normal quantile for p < 0.075."""
    root = np.sqrt(_minus_log(p))
    result = _rational(root - 1.6, _TAIL)
    if root.max() > 5.0:
        far = root > 5.0
        result[far] = _rational(root[far] - 5.0, _FAR)
    return result


def _minus_log(p: Float64s) -> Float64s:
    """-ln(p) from + - * / alone: p = f * 2**k, ln(f / sqrt(1/2)) = 2 artanh((f - c) / (f + c))."""
    fraction, exponent = np.frexp(p)
    ratio = (fraction - _SQRT_HALF) / (fraction + _SQRT_HALF)
    square = ratio * ratio
    series = _polynomial(square, (*_LOG_SERIES, 1.0))
    np.multiply(series, ratio, out=series)
    np.multiply(series, 2.0, out=series)
    return (0.5 - exponent.astype(np.float64)) * _LN2 - series


def priority(keys: UInt64s, positions: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Entries of a keyed random permutation of range(m), by random access.

    A Feistel network over a power of two, walked until it lands below m, so one entry costs the
    same whatever m is and nothing is ever drawn or consumed. Up to m = 1,024, where few bits would
    mix too little and much walking would be needed, keyed words are sorted instead.

    Args:
        keys: One key a row, shape (n,).
        positions: Positions in the permutation, in [0, m), shape (p,) or (n, p).
        m: Size of the permuted range, 1 to 2**62.

    Returns:
        Registry indices, shape (n, p).
    """
    if m <= _SORTED_UP_TO:
        words = candidate_words(keys[:, None], np.arange(m, dtype=np.int64)[None, :])
        order = np.argsort(words, axis=1, kind="stable")
        picked = np.broadcast_to(positions, (keys.size, positions.shape[-1]))
        return np.take_along_axis(order, picked, axis=1)
    width = int(m - 1).bit_length()
    constants = _round_constants(keys)
    words = positions.astype(np.uint64) + np.zeros_like(keys)[:, None]
    entries = _feistel(words, constants[:, :, None], width)
    flat = entries.reshape(-1)
    outside = np.flatnonzero(flat >= np.uint64(m))
    while outside.size:
        rows = outside // entries.shape[1]
        walked = _feistel(flat.take(outside), constants.take(rows, axis=1), width)
        flat[outside] = walked
        outside = outside[walked >= np.uint64(m)]
    return entries.view(np.int64)


def _feistel(words: UInt64s, constants: UInt64s, width: int) -> UInt64s:
    """One pass of the network over range(2**width); both halves are permuted in turn.

    The round function is multiply-shift hashing (Dietzfelbinger): the top bits of
    factor * half + shift.
    """
    low_width, high_width = width // 2, width - width // 2
    high, low = words >> np.uint64(low_width), words & np.uint64((1 << low_width) - 1)
    mixed = np.empty_like(words)
    for step in range(_FEISTEL_STEPS):
        half, other, kept = (high, low, high_width) if step % 2 else (low, high, low_width)
        np.multiply(other, constants[2 * step], out=mixed)
        np.add(mixed, constants[2 * step + 1], out=mixed)
        np.right_shift(mixed, np.uint64(64 - kept), out=mixed)
        np.bitwise_xor(half, mixed, out=half)
    np.left_shift(high, np.uint64(low_width), out=high)
    joined: UInt64s = np.bitwise_or(high, low, out=high)
    return joined


def _round_constants(keys: UInt64s) -> UInt64s:
    """An odd factor and a shift for each step and key, shape (2 * steps, n)."""
    offsets = np.arange(1, 2 * _FEISTEL_STEPS + 1, dtype=np.uint64)[:, None] * _GAMMA
    constants = mix(keys + offsets)
    constants[::2] |= np.uint64(1)
    return constants
