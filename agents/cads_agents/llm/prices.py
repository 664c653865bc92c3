"""What tokens cost: a table of data with its sources, or the user's own figures.

A model without a known price costs nothing in the figures and is marked as unknown; no price is
guessed from a name that looks like another.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any, Final
from urllib.parse import urlsplit

from cads_agents.llm.model import is_local
from cads_agents.llm.numbers import is_number
from cads_env.errors import AgentError, quoted, suggest
from cads_env.values import load_yaml

_MILLION: Final = 1_000_000
_NUMBERS: Final = ("input", "cached", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per million tokens.

    Attributes:
        input: Of a prompt.
        output: Of an answer, thinking included.
        cached: Of the part of a prompt that the server had kept; None: as `input`.
        source: Where the figures were read.
        date: When, as YYYY-MM or YYYY-MM-DD.
    """

    input: float
    output: float
    cached: float | None = None
    source: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        """Check the figures.

        Raises:
            AgentError: A price is not a finite number of at least 0.
        """
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is None and name == "cached":
                continue
            if not is_number(value) or value < 0:
                msg = (
                    f"prices.{name} is {quoted(value)}; expected dollars per million tokens, 0 or "
                    "more."
                )
                raise AgentError(msg)
            object.__setattr__(self, name, float(value))

    def cost(self, usage: Mapping[str, Any]) -> float:
        """Dollars for one answer.

        Args:
            usage: `tokens_in` (cached ones included), `tokens_cached` and `tokens_out`.
        """
        tokens_in = int(usage.get("tokens_in", 0))
        cached = min(int(usage.get("tokens_cached", 0)), tokens_in)
        cached_price = self.input if self.cached is None else self.cached
        dollars = (tokens_in - cached) * self.input + cached * cached_price
        return (dollars + int(usage.get("tokens_out", 0)) * self.output) / _MILLION

    def to_dict(self) -> dict[str, Any]:
        """The price as JSON values; `price_of(..., prices=...)` takes it back."""
        return asdict(self)


def price_of(
    model: str, *, base_url: str | None = None, prices: Mapping[str, Any] | Price | None = None
) -> Price | None:
    """The price of a model's tokens.

    Args:
        model: Name that is asked for.
        base_url: Address of the server; None for the provider's own.
        prices: The user's figures, which win: `input` and `output`, `cached` if it differs.

    Returns:
        A price; 0 for a server of this machine or of a private network. None: not known.

    Raises:
        AgentError: The user's figures are not usable.
    """
    if isinstance(prices, Price):
        return prices
    if prices is not None:
        return _own(prices)
    if is_local(base_url):
        return Price(input=0.0, output=0.0, source="a server of one's own")
    host = urlsplit(base_url).hostname if base_url else None
    for entry in _table():
        if host is not None and host not in entry["hosts"]:
            continue
        if any(fnmatch.fnmatchcase(model, pattern) for pattern in entry["models"]):
            figures: dict[str, Any] = {key: entry.get(key) for key in (*_NUMBERS, "source", "date")}
            return Price(**figures)
    return None


def cost_of(
    model: str,
    usage: Mapping[str, Any],
    *,
    base_url: str | None = None,
    prices: Mapping[str, Any] | Price | None = None,
) -> float | None:
    """Dollars for one answer of a model; None where its price is not known.

    Args:
        model: Name that is asked for.
        usage: `tokens_in`, `tokens_cached`, `tokens_out`.
        base_url: Address of the server; None for the provider's own.
        prices: The user's figures; see `price_of`.
    """
    price = price_of(model, base_url=base_url, prices=prices)
    return None if price is None else price.cost(usage)


def _own(prices: Mapping[str, Any]) -> Price:
    """The user's own figures."""
    if not isinstance(prices, Mapping):
        msg = f"prices is {quoted(prices)}; expected a mapping such as {{input: 1, output: 4}}."
        raise AgentError(msg)
    names = tuple(Price.__dataclass_fields__)
    for key in prices:
        if key not in names:
            msg = f"prices has no entry {quoted(key)}. {suggest(str(key), names)}"
            raise AgentError(msg)
    for key in ("input", "output"):
        if key not in prices:
            msg = f"prices lacks {key!r}; expected dollars per million tokens of it."
            raise AgentError(msg)
    return Price(**({"source": "the user"} | dict(prices)))


@functools.cache
def _table() -> tuple[Mapping[str, Any], ...]:
    """The entries of `cads_configs/prices.yaml`, first match first."""
    text = (resources.files("cads_configs") / "prices.yaml").read_text("utf-8")
    data = load_yaml(text)
    shared = {"source": data["source"], "date": data["date"]}
    return tuple(
        shared | {"hosts": provider["hosts"]} | entry
        for provider in data["providers"]
        for entry in provider["prices"]
    )
