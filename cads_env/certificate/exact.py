"""Decisions that doubles cannot make alike on every processor, made in decimal arithmetic.

Which side of a grid point a root lies on decides bytes, and the last bits of a double's log differ
between processors. Called for the few roots that lie that close to one; never for all.
"""

from __future__ import annotations

import decimal
import functools
import math
from decimal import Decimal
from typing import Final

STEPS: Final = 1 << 40
"""Grid points in one unit: bounds and log caps are multiples of 2**-40."""

FARTHEST_QUANTILE: Final = 12.0
"""Largest argument of the normal law that the digits below suffice for."""

_DIGITS: Final = 100
_PI: Final = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803"
    "48253421170679"
)


@functools.lru_cache(maxsize=1 << 16)
def mixture_exceeds(flagged: int, n: int, step: int, delta: float) -> bool:
    """Whether delta M_n(p) > 1 at p = step / 2**40, for the Krichevsky-Trofimov mixture.

    B(S + 1/2, n - S + 1/2) / B(1/2, 1/2) = C(2S, S) C(2(n - S), n - S) / (4^n C(n, S)).

    Args:
        flagged: Number of flagged controls S, in [0, n].
        n: Number of controls.
        step: Position on the grid, in (0, 2**40).
        delta: Chance that the bound fails.

    Returns:
        Whether the flag rate p is rejected.

    Source: CADS, eq. (7).
    """
    clean = n - flagged
    with decimal.localcontext(decimal.Context(prec=_DIGITS // 2)):
        p = Decimal(step) / STEPS
        logs = (
            _log_integer(math.comb(2 * flagged, flagged))
            + _log_integer(math.comb(2 * clean, clean))
            - _log_integer(math.comb(n, flagged))
            - n * Decimal(4).ln()
            + Decimal(delta).ln()
        )
        if flagged:
            logs -= flagged * p.ln()
        if clean:
            logs -= clean * (1 - p).ln()
        return bool(logs > 0)


@functools.lru_cache(maxsize=1 << 16)
def cap_is_within_budget(step: int, epsilon: float, ratio: float) -> bool:
    """Whether the increment capped at C = exp(step / 2**40) has mean at most 1.

    epsilon (C - 1) <= (1 - epsilon) E_0[(L - C)_+], with
    E_0[(L - C)_+] = Phi(r / 2 - ln C / r) - C Phi(-r / 2 - ln C / r) and r = theta / s.

    Args:
        step: Position of the log cap on the grid, >= 0.
        epsilon: Contamination bound, in [0, 1].
        ratio: theta / s, > 0; r / 2 + ln C / r is at most `FARTHEST_QUANTILE`.

    Returns:
        Whether the cap is valid.

    Source: CADS, eq. (3).
    """
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        log_cap, r, share = Decimal(step) / STEPS, Decimal(ratio), Decimal(epsilon)
        cap = log_cap.exp()
        excess = _normal_cdf(r / 2 - log_cap / r) - cap * _normal_cdf(-r / 2 - log_cap / r)
        return bool(share * (cap - 1) <= (1 - share) * excess)


def _normal_cdf(x: Decimal) -> Decimal:
    """Phi(x) = 1/2 + phi(x) (x + x^3 / 3 + x^5 / (3 5) + ...), in the current context."""
    square, term, total, odd = x * x, x, x, 1
    while abs(term) > abs(total) * Decimal(10) ** -_DIGITS:
        odd += 2
        term = term * square / odd
        total += term
    density = (-square / 2).exp() / (2 * _PI).sqrt()
    return Decimal("0.5") + density * total


def _log_integer(value: int) -> Decimal:
    """The log of a positive integer of any length, in the current context."""
    shift = max(0, value.bit_length() - 256)
    return (+Decimal(value >> shift)).ln() + shift * Decimal(2).ln()
