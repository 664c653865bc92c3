"""The one place that asks a model: sampling, pace, retries, checks of the answer, its price.

A client is shared by all campaigns that ask the same model in the same way, from any number of
threads. It raises `ModelFailed` when the infrastructure is broken for good; an answer that is
empty or makes no sense is an answer. No key ever enters its settings, its errors or its answers.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from cads_agents.llm.chat import Ask, answer_of
from cads_agents.llm.failures import (
    ContextOverflow,
    Failure,
    ModelFailed,
    Patience,
    classify,
    is_refused_connection,
    scrubbed,
)
from cads_agents.llm.model import build_model, is_openai_family, model_settings
from cads_agents.llm.numbers import check_positive
from cads_agents.llm.objects import object_settings, secrets_of, url_of, without_own_retries
from cads_agents.llm.pace import Pace
from cads_agents.llm.prices import Price, price_of
from cads_agents.llm.ready import (
    Served,
    ask_served,
    check_served,
    is_served_below,
    lacks_version,
    start_command,
)
from cads_agents.llm.sampling import Sampling
from cads_env.errors import AgentError, quoted
from cads_env.proposer import ProposerFailed

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_KEPT: Final = 32
"""Clients that a process keeps; a campaign that brings a model object of its own needs no more."""

_LEFT_OUT: Final = {
    "seed": "send_seed: false",
    "temperature": "temperature: null",
    "top_p": "top_p: null",
}
"""The option that leaves a setting out of every request."""

_DATED: Final = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4})|[-:]latest)?")
"""What a provider adds to the name of a model: a date or "latest"."""


class Client:
    """Asks one chat model, with one sampling, one pace and one patience."""

    def __init__(
        self,
        model: BaseChatModel | str | Mapping[str, Any],
        *,
        sampling: Sampling | Mapping[str, Any] | None = None,
        timeout_s: float = 120.0,
        retries: int = 6,
        backoff_s: float = 1.0,
        longest_wait_s: float = 60.0,
        requests_per_second: float | None = None,
        context_tokens: int | None = None,
        prices: Mapping[str, Any] | Price | None = None,
        reported_as: Sequence[str] = (),
    ) -> None:
        """A client; nothing is asked yet.

        Args:
            model: A LangChain chat model, or what `model_settings` takes.
            sampling: Sent with every request.
            timeout_s: Seconds of one request, at most; a chat model object keeps its own.
            retries: Further tries after a failure that may pass.
            backoff_s: Seconds before the first further try, doubled for each one after it.
            longest_wait_s: Seconds of one wait, at most, whatever the server asks for.
            requests_per_second: Of all threads together; None: as fast as they come.
            context_tokens: Tokens of a prompt and its answer; None: what the server says.
            prices: Dollars per million tokens, where the table does not have them.
            reported_as: Other names that the server may give the model in its answers.

        Raises:
            AgentError: A setting is not usable; the message names it.
            MissingExtraError: LangChain is not installed.
        """
        self._sampling = Sampling.of(sampling)
        self._patience = Patience(
            retries=retries, backoff_s=backoff_s, longest_wait_s=longest_wait_s
        )
        self._pace = Pace(requests_per_second)
        check_positive(timeout_s, name="timeout_s")
        if context_tokens is not None:
            check_positive(context_tokens, name="context_tokens")
        if isinstance(model, (str, Mapping)):
            about = model_settings(model)
            built = build_model(about, timeout_s=timeout_s)
            # Its connections are this client's own, and end with it.
            if (connections := getattr(built, "http_client", None)) is not None:
                weakref.finalize(self, connections.close)
        else:
            about, built = object_settings(model), without_own_retries(model)
        self.name: str = about["model"]
        self._ask = Ask(built, self._sampling)
        self._secrets = secrets_of(built)
        self._reported_as = frozenset(reported_as)
        self._is_openai = (
            is_openai_family(built) and getattr(built, "root_client", None) is not None
        )
        self.url = url_of(built, about)
        table_url = self.url if self._is_openai else about.get("base_url")
        self._price = price_of(self.name, base_url=table_url, prices=prices)
        self._context_tokens = context_tokens
        self._served: Served | None = None
        self._served_lock = threading.Lock()
        self.settings: dict[str, Any] = {
            "model": about,
            "sampling": self._sampling.to_dict(),
            "timeout_s": timeout_s,
            **asdict(self._patience),
            "requests_per_second": requests_per_second,
            "context_tokens": context_tokens,
            "prices": None if self._price is None else self._price.to_dict(),
            "reported_as": sorted(self._reported_as),
        }

    def __repr__(self) -> str:
        """The model and its address; no key."""
        return f"Client({self.name!r}, url={self.url!r})"

    @property
    def context_tokens(self) -> int | None:
        """Tokens of a prompt and its answer together; None while nobody has said."""
        if self._context_tokens is not None:
            return self._context_tokens
        return self._served.context_tokens if self._served is not None else None

    def check_ready(self) -> None:
        """See that the server is there and serves the model; other providers are not asked.

        Raises:
            ModelFailed: Nobody answers, the key is refused, or the model is not served.
        """
        if self._is_openai:
            served = check_served(
                self._list_models,
                name=self.name,
                url=self.url,
                scrub=self._scrub,
                is_below=lambda: is_served_below(self._ask.model, url=self.url),
            )
            with self._served_lock:
                self._served = served

    def served(self) -> Served | None:
        """What the server says of the model, asked once; None for other providers.

        Raises:
            ModelFailed: As in `check_ready`.
        """
        if self._served is None:
            self.check_ready()
        return self._served

    def stop(self) -> None:
        """End the waits of every thread, which raise `KeyboardInterrupt` there."""
        self._pace.stop()

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        seed: int,
        max_tokens: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The model's answer.

        Args:
            messages: Of `role` ("system", "user", "assistant") and `content`.
            seed: Generation seed; see `generation_seed`.
            max_tokens: Tokens of this answer, at most; None: as the sampling says.
            extra_body: Fields that vLLM adds to the protocol, for guided decoding.

        Returns:
            JSON values: `text`, `finish_reason` ("unknown" where none came), `model`,
            `fingerprint`, `id`, `usage` (`tokens_in`, `tokens_out`, `tokens_cached`, `cost`),
            `retries`; where they apply `thinking`, `revision`, `usage_missing`, `price_unknown`,
            `seed_sent` (false), `unsent` (settings that the provider's class does not take),
            `paced_s`.

        Raises:
            ContextOverflow: The prompt is too long for the model.
            ModelFailed: The infrastructure is broken for good, or another model answered.
            AgentError: The chat model cannot be asked in this way at all.
        """
        failures: list[dict[str, Any]] = []
        began, paced_s = time.monotonic(), 0.0
        while True:
            paced_s += self._pace.take_turn()
            try:
                message = self._ask(
                    messages,
                    seed=seed,
                    max_tokens=max_tokens or self._sampling.max_tokens,
                    extra_body=extra_body,
                )
                answer = answer_of(message, model=self.name)
                break
            except (AgentError, ProposerFailed):
                raise
            except NotImplementedError as error:
                raise AgentError(self._async_only(error)) from None
            # Clients of providers raise what they like; what it means is decided in one place.
            except Exception as error:
                self._take(error, failures, seed=seed, began=began)
        self._check_model(answer["model"], failures)
        return self._finish(answer, failures, paced_s=paced_s)

    def _take(
        self, error: Exception, failures: list[dict[str, Any]], *, seed: int, began: float
    ) -> None:
        """Note a failed request and wait, or raise what it comes to."""
        failure = classify(error)
        words = self._scrub(failure.said)
        note: dict[str, Any] = {"error": failure.kind, "status": failure.status, "wait_s": 0.0}
        failures.append(note | {"said": words})
        if failure.is_retried and len(failures) <= self._patience.retries:
            wait_s = self._patience.wait_s(failure, tried=len(failures), key=str(seed))
            failures[-1]["wait_s"] = round(wait_s, 3)
            if failure.kind == "rate_limit" and failure.retry_after_s is not None:
                # The server counts all requests of this client, so all of them wait.
                self._pace.pause(min(failure.retry_after_s, self._patience.longest_wait_s))
            self._pace.sleep(wait_s)
            return
        spent_s = time.monotonic() - began
        reason = self._reason(failure, error, words, tried=len(failures), spent_s=spent_s)
        kind = ContextOverflow if failure.kind == "overflow" else ModelFailed
        # The cause may quote a key; its words are in the message, without it.
        raise kind(reason, kind=failure.kind, errors=failures) from None

    def _reason(
        self, failure: Failure, error: Exception, words: str, *, tried: int, spent_s: float
    ) -> str:
        """Why a request failed for good: the address, what went wrong, how often, how long."""
        where = f"{self.name} at {self.url}"
        status = f"HTTP {failure.status}: " if failure.status is not None else ""
        if failure.kind == "overflow":
            return f"The prompt is too long for {where}: {status}{words}"
        if failure.kind == "refused":
            return f"{where} refused the request: {status}{words}{self._advice(failure)}"
        if failure.kind == "broken":
            return f"The chat model {where} raised {type(error).__name__}: {words}"
        what = {
            "timeout": "did not answer in time",
            "connection": "could not be reached",
            "rate_limit": "limits the rate of requests",
            "server": "reports an error of its own",
            "malformed": "answered with what is no chat completion",
        }[failure.kind]
        if is_refused_connection(error):
            what = "could not be reached (connection refused)"
            words += f". Start a server with: {start_command(self.name, self.url)}"
        times = "once" if tried == 1 else f"{tried} times"
        return f"{where} {what}, {times} in {spent_s:.1f} s. Last: {status}{words}"

    def _async_only(self, error: NotImplementedError) -> str:
        words = self._scrub(classify(error).said)
        return (
            f"The chat model {self.name!r} ({type(self._ask.model).__name__}) does not implement "
            f"`invoke` ({words}); perhaps it answers asynchronously alone. An LLM agent asks by "
            "`invoke`, from several threads: give a model that has it."
        )

    def _advice(self, failure: Failure) -> str:
        """What may mend a refusal: another address, or a setting left out that it names."""
        if failure.status == 404 and self._is_openai:
            asked = f" (asked: {self.url}/chat/completions)"
            if lacks_version(self.url):
                asked += f". Perhaps base_url lacks /v1: give {self.url}/v1"
            return asked
        if failure.status not in (400, 422):
            return ""
        said = failure.said.lower()
        named = [name for name in _LEFT_OUT if re.search(rf"\b{name}\b", said)]
        options = ", ".join(f"`{_LEFT_OUT[name]}`" for name in named)
        return f" (If the model takes no {' and no '.join(named)}: {options}.)" if named else ""

    def _finish(
        self, answer: dict[str, Any], failures: list[dict[str, Any]], *, paced_s: float
    ) -> dict[str, Any]:
        """The answer with its price and how it was got."""
        if self._price is None:
            answer["price_unknown"] = True
        else:
            answer["usage"]["cost"] = self._price.cost(answer["usage"])
        if self._served is not None and self._served.root:
            # A server's own folders are nobody's business; a snapshot's last part is its hash.
            answer["revision"] = re.sub(r"^/.*/(?=[^/])", "", self._served.root)
        if not self._ask.sends_seed:
            answer["seed_sent"] = False
        if self._ask.unsent:
            answer["unsent"] = list(self._ask.unsent)
        if paced_s >= 0.001:
            answer["paced_s"] = round(paced_s, 3)
        answer["retries"] = failures
        return answer

    def _check_model(self, reported: str, failures: Sequence[Mapping[str, Any]]) -> None:
        """Raise where another model answered than the one that was asked for."""
        if reported == self.name or reported in self._reported_as:
            return
        if self._is_openai:
            # Where the list cannot be had, the two names alone decide.
            with contextlib.suppress(ModelFailed):
                served = self.served()
                if served is not None and reported in served.aliases:
                    return
        if _is_dated(reported, self.name):
            return
        msg = (
            f"Asked {self.url} for the model {quoted(self.name)}, and {quoted(reported)} answered. "
            "If both are the same model, say so in the agent's options: "
            f"`reported_as: [{reported}]`."
        )
        raise ModelFailed(msg, kind="refused", errors=failures)

    def _list_models(self) -> Served:
        return ask_served(self._ask.model, name=self.name)

    def _scrub(self, text: str) -> str:
        return scrubbed(text, self._secrets)


_clients: OrderedDict[tuple[int, str], Client] = OrderedDict()
_clients_lock = threading.Lock()


def shared_client(model: BaseChatModel | str | Mapping[str, Any], **settings: Any) -> Client:
    """The process's client for a model and its settings, built at the first call.

    Args:
        model: As `Client` takes it; an object shares a client with itself alone.
        **settings: As `Client` takes them.

    Raises:
        AgentError: As in `Client`.
        MissingExtraError: As in `Client`.
    """
    is_named = isinstance(model, (str, Mapping))
    plain = dict(settings)
    plain["sampling"] = Sampling.of(settings.get("sampling")).to_dict()
    if isinstance(plain.get("prices"), Price):
        plain["prices"] = plain["prices"].to_dict()
    about = model_settings(model) if isinstance(model, (str, Mapping)) else None
    key = (0 if is_named else id(model), json.dumps([about, plain], sort_keys=True))
    with _clients_lock:
        client = _clients.pop(key, None)
        if client is None:
            # An object's number is its own only as long as the object lives: the client keeps it.
            client = Client(model, **settings)
        _clients[key] = client
        while len(_clients) > _KEPT:
            _clients.popitem(last=False)
    return client


def _is_dated(reported: str, asked: str) -> bool:
    """True where a provider's service answers for a name with a dated version of the same model."""
    reported, asked = reported.removeprefix("models/"), asked.removeprefix("models/")
    stem = asked.removesuffix("-latest").removesuffix(":latest")
    rest = reported.removeprefix(stem) if reported.startswith(stem) else None
    return rest is not None and _DATED.fullmatch(rest) is not None
