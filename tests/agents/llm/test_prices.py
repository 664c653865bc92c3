from __future__ import annotations

from typing import Any

import pytest

from cads_agents.llm.prices import Price, cost_of, price_of
from cads_env.errors import AgentError

USAGE = {"tokens_in": 1_000_000, "tokens_cached": 400_000, "tokens_out": 100_000}


def test_cached_tokens_are_part_of_the_prompt_and_cost_their_own_price() -> None:
    price = Price(input=2.0, cached=0.5, output=8.0)
    assert price.cost(USAGE) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 8)
    assert Price(input=2.0, output=8.0).cost(USAGE) == pytest.approx(2 + 0.1 * 8)


def test_a_dated_name_has_its_models_price_and_a_longer_name_has_not() -> None:
    mini = price_of("gpt-4o-mini")
    assert mini is not None
    assert mini.input == 0.15
    assert price_of("gpt-4o-mini-2024-07-18") == mini
    assert price_of("gpt-4o-mini-audio-preview") is None
    assert price_of("gpt-4o") != mini
    assert price_of("some-model") is None


def test_a_price_of_the_providers_own_service_is_not_assumed_of_another_host() -> None:
    assert price_of("gpt-4o-mini", base_url="https://api.openai.com/v1") is not None
    assert price_of("gpt-4o-mini", base_url="https://gateway.example.org/v1") is None


def test_ones_own_server_costs_nothing_and_an_unknown_price_is_not_zero() -> None:
    assert cost_of("Qwen/Qwen2.5-7B-Instruct", USAGE, base_url="http://127.0.0.1:8000/v1") == 0.0
    assert cost_of("Qwen/Qwen2.5-7B-Instruct", USAGE) is None


def test_the_users_figures_win_and_come_back_from_settings() -> None:
    own = price_of("gpt-4o-mini", prices={"input": 1, "output": 2})
    assert own is not None
    assert (own.input, own.cached, own.output) == (1.0, None, 2.0)
    assert price_of("x", prices=own.to_dict()) == own


@pytest.mark.parametrize(
    "prices",
    [{"input": 1}, {"input": -1, "output": 1}, {"input": 1, "output": "x"}, {"in": 1}, [1]],
)
def test_unusable_prices_are_refused(prices: Any) -> None:
    with pytest.raises(AgentError, match="prices"):
        price_of("m", prices=prices)


def test_every_price_in_the_table_names_its_source_and_date() -> None:
    for name in ("gpt-5-nano", "claude-haiku-4-5", "gemini-2.5-flash", "mistral-small-2603"):
        price = price_of(name)
        assert price is not None
        assert price.source
        assert price.date.startswith("20")
