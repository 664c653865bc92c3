"""`llm`: any chat model as a proposer.

Each round it fills a prompt from the view, asks, reads the names and asks again while slots are
open, as often as the protocol allows. Every request goes through the campaign's journal, so a run
is resumed without asking twice and replayed without a model. One instance plays one campaign; it
never repairs, reorders or filters what the model wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cads_agents.llm.aliases import load_aliases
from cads_agents.llm.attempts import Reply, Tally, reply_of
from cads_agents.llm.connection import ChatClient, Connection
from cads_agents.llm.failures import ContextOverflow
from cads_agents.llm.guided import Guide, guide_of, guided_kind
from cads_agents.llm.objects import own_sampling
from cads_agents.llm.options import (
    DEFAULT,
    check_play,
    option_names,
    sampling_of,
    whole_model,
    whole_options,
)
from cads_agents.llm.overflow import (
    dropping_order,
    estimated_tokens,
    fewest_drops,
    likely_tokens,
    without,
)
from cads_agents.llm.prompts import Prompt, load_prompt
from cads_agents.llm.render import (
    Candidates,
    Message,
    joined,
    messages_of,
    retry_messages,
    separator_of,
)
from cads_agents.llm.sampling import generation_seed
from cads_env.proposer import Journal, Proposal, ProposerFailed, Unrecorded, View

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class LLMProposer:
    """Asks a chat model which candidates to test.

    Attributes:
        default_prompt: The prompt of this kind of agent where none is given.
        prompt: The prompt in use.
    """

    default_prompt: ClassVar[str] = "informed"

    def __init__(
        self,
        model: str | Mapping[str, Any] | BaseChatModel,
        *,
        prompt: str | Path | Mapping[str, Any] | Prompt | None = None,
        temperature: float | str | None = DEFAULT,
        top_p: float | str | None = DEFAULT,
        max_tokens: int | str | None = DEFAULT,
        send_seed: bool = True,
        attempts: int | None = None,
        guided: str | bool | None = None,
        aliases: str | Path | Mapping[str, str] | None = None,
        context_tokens: int | None = None,
        overflow: str = "oldest-low",
        provider: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        default_headers: Mapping[str, str] | None = None,
        timeout_s: float = 120.0,
        retries: int = 6,
        backoff_s: float = 1.0,
        longest_wait_s: float = 60.0,
        requests_per_second: float | None = None,
        prices: Mapping[str, Any] | None = None,
        reported_as: str | Sequence[str] = (),
        client: ChatClient | None = None,
        seed: int | None = None,
        journal: Journal | None = None,
    ) -> None:
        """Choose the model, the prompt and the rules of a round.

        Args:
            model: A LangChain chat model; a name ("openai:NAME", or NAME at `base_url`); or a
                mapping of settings (`model`, `provider`, `base_url`, `api_key_env`, ...).
            prompt: A name (thin, informed, listed, asked, ...), a path, or a prompt's content.
                None: `default_prompt`.
            temperature: From 0 to 2; None sends none. "default": what a chat model object was
                built with, else 0.7.
            top_p: Above 0, at most 1; None sends none. "default": the object's, else 0.9.
            max_tokens: Tokens of one answer, at most. "default" or None: the object's, else 700.
            send_seed: Whether a generation seed is sent.
            attempts: Requests in one round, at most; None: as many as the protocol allows.
            guided: "candidates" or "untested": the server lets the model write nothing else.
            aliases: Other names of candidates: a path or a mapping. None: not used.
            context_tokens: The model's context, in tokens, by which a prompt is shortened before
                it is sent; None: when the server refuses it.
            overflow: Which part of the history goes first: "oldest-low", "oldest" or "fail".
            provider: As LangChain names it; None: "openai", which any compatible server is.
            base_url: The server's address, such as http://127.0.0.1:8000/v1.
            api_key: "EMPTY" or None; a key is never an option.
            api_key_env: The environment variable that holds the key.
            extra_body: Further fields of every request, for compatible servers.
            default_headers: Headers of every request; no secrets.
            timeout_s: Seconds until a request counts as failed.
            retries: Further tries of a failed request.
            backoff_s: Seconds before the first of them, doubled for each one after it.
            longest_wait_s: Seconds of one wait, at most.
            requests_per_second: Of all campaigns together; None: no limit.
            prices: Dollars per million tokens: `input`, `cached`, `output`. None: the price table.
            reported_as: Other names by which the server may call the model in its answers.
            client: Asks in place of one made from `model`, which is then not used.
            seed: Of this campaign, from which every request's seed is derived. None: what the run
                gives, else 0.
            journal: Keeps what is asked and answered. None: what the run gives, else nothing is
                kept.

        Raises:
            AgentError: An option is unusable; the message names it.
        """
        self.prompt = load_prompt(prompt if prompt is not None else self.default_prompt)
        self._sampling = sampling_of(
            {
                "temperature": temperature,
                "top_p": top_p,
                "max_tokens": max_tokens,
                "send_seed": send_seed,
            },
            own=own_sampling(model) if client is None else {},
        )
        check_play(
            attempts=attempts,
            overflow=overflow,
            context_tokens=context_tokens,
            max_tokens=self._sampling.max_tokens,
            seed=seed,
        )
        self._attempts, self._overflow = attempts, overflow
        self._guided = guided_kind(guided)
        self._aliases = load_aliases(aliases)
        self._budget: int | None = None
        if context_tokens is not None:
            self._budget = context_tokens - self._sampling.max_tokens
        beside = {
            "provider": provider,
            "base_url": base_url,
            "api_key": api_key,
            "api_key_env": api_key_env,
            "extra_body": extra_body,
            "default_headers": default_headers,
        }
        self._client: ChatClient = client or Connection(
            whole_model(model, beside),
            sampling=self._sampling,
            timeout_s=timeout_s,
            retries=retries,
            backoff_s=backoff_s,
            longest_wait_s=longest_wait_s,
            requests_per_second=requests_per_second,
            prices=prices,
            # A single name is a list of one.
            reported_as=(reported_as,) if isinstance(reported_as, str) else reported_as,
        )
        self._seed, self._journal = seed, journal
        # What the server once refused as too long is not sent again in this campaign.
        self._longest_history: int | None = None
        self._registry: tuple[str, ...] | None = None
        self._listed = Candidates("", ", ")
        self._guide_made: tuple[View, Guide] | None = None

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options with the content of every file that they name, as JSON values.

        Raises:
            AgentError: An unknown option, or a value that the agent cannot use.
        """
        names = option_names(cls)
        if "model" not in names:
            # A class of somebody's own that chooses its model itself; its options are its own.
            return dict(options)
        whole = whole_options(options, names=names, default_prompt=cls.default_prompt)
        cls(**whole)  # what it refuses is refused before a run begins
        return whole

    @staticmethod
    def arm_suffix(options: Mapping[str, Any]) -> str:
        """What marks the arm: `+guided` where the server keeps the model to candidates."""
        return "+guided" if guided_kind(options.get("guided")) else ""

    def begin(self, *, seed: int | None = None, journal: Journal | None = None) -> None:
        """Take the seed and the journal of the campaign, where none was given before.

        Args:
            seed: Of the campaign.
            journal: Of the campaign.
        """
        self._seed = seed if self._seed is None else self._seed
        self._journal = journal if self._journal is None else self._journal

    def check_ready(self) -> None:
        """Raise `ProposerFailed` with what to do when the model cannot be reached."""
        self._client.check_ready()

    def preview(self, view: View) -> Mapping[str, Any]:
        """What would be sent for a view, and about how many tokens it takes.

        Returns:
            `messages`, `tokens_in` (an estimate; see `likely_tokens`) and `tokens_out_most` of the
            first request; no messages where nothing is asked.
        """
        if self._has_nothing_to_name(view):
            return {"messages": [], "tokens_in": 0, "tokens_out_most": 0}
        messages = self._first_messages(view)
        return {
            "messages": messages,
            "tokens_in": likely_tokens(messages),
            "tokens_out_most": self._sampling.max_tokens,
        }

    def propose(self, view: View) -> Proposal:
        """The names that the model wrote in this round's attempts.

        Raises:
            ProposerFailed: The model cannot be reached, or its context is too short even without
                history.
        """
        tally = Tally(view=view, aliases=self._aliases)
        for attempt in range(self._attempts or view.attempts):
            if not tally.open_slots or self._has_nothing_to_name(view):
                break
            tally.add(self._ask(view, attempt, tally))
        return tally.proposal()

    def _candidates(self, view: View) -> Sequence[str]:
        """The candidates that `$candidates` lists and that a guided answer may name."""
        return view.identifiers

    def _ask(self, view: View, attempt: int, tally: Tally) -> Reply:
        """One attempt, its prompt shortened as often as the server finds it too long."""
        order = dropping_order(view, self.prompt.placeholders, rule=self._overflow)
        dropped = self._dropped_before_asking(view, order, tally)
        while True:
            messages = self._messages(view, order[:dropped], tally)
            tally.requests += 1
            tally.history_dropped = max(tally.history_dropped, dropped)
            kept = len(order) - dropped
            reply = reply_of(self._exchange(view, attempt, messages, is_shortest=kept == 0))
            if not reply.is_overflow:
                return reply
            if kept == 0:
                raise ProposerFailed(self._too_long(messages))
            self._longest_history = kept // 2
            dropped = len(order) - self._longest_history

    def _dropped_before_asking(self, view: View, order: Sequence[str], tally: Tally) -> int:
        """How many candidates leave the prompt's lists by the declared rule."""
        known = self._longest_history
        least = 0 if known is None else max(0, len(order) - known)
        if self._budget is None:
            return least

        def tokens_after(more: int) -> int:
            return estimated_tokens(self._messages(view, order[: least + more], tally))

        if tokens_after(0) <= self._budget:
            return least
        if self._overflow == "fail":
            raise ProposerFailed(self._too_long(self._messages(view, (), tally)))
        return least + fewest_drops(tokens_after, len(order) - least, budget=self._budget)

    def _too_long(self, messages: Sequence[Message]) -> str:
        rule = f"overflow={self._overflow!r}"
        return (
            f"The prompt {self.prompt.name!r} (about {estimated_tokens(messages):,} tokens) is "
            f"longer than the context of {self._client.name!r} allows, and {rule} leaves nothing "
            "more to drop. Choose a model with a longer context, a shorter prompt, or a smaller "
            "max_tokens."
        )

    def _first_messages(self, view: View) -> list[Message]:
        tally = Tally(view=view)
        order = dropping_order(view, self.prompt.placeholders, rule=self._overflow)
        return self._messages(view, order[: self._dropped_before_asking(view, order, tally)], tally)

    def _messages(self, view: View, dropped: Sequence[str], tally: Tally) -> list[Message]:
        listed = self._list(view)
        messages = messages_of(self.prompt, view, without(view, dropped), listed)
        if tally.texts and self.prompt.retry:
            messages += retry_messages(
                self.prompt.retry,
                tally.texts[-1],
                taken=tuple(tally.taken),
                refused=tally.refused,
                open_slots=tally.open_slots,
                separator=listed.separator,
            )
        return messages

    def _list(self, view: View) -> Candidates:
        """The candidates as one text; the whole registry's is made once a campaign."""
        if self._registry is not view.identifiers:
            self._registry = view.identifiers
            separator = separator_of(view.identifiers)
            is_asked = "candidates" in self.prompt.placeholders
            text = joined(view.identifiers, separator) if is_asked else ""
            self._listed = Candidates(text, separator)
        names = self._candidates(view)
        if names is view.identifiers:
            return self._listed
        separator = self._listed.separator
        return Candidates(joined(names, separator) or "none are left", separator)

    def _guide(self, view: View) -> Guide | None:
        """What the server is told to allow: the same in all attempts of a round."""
        if self._guided is None:
            return None
        if self._guide_made is None or self._guide_made[0] is not view:
            self._guide_made = (view, guide_of(view, self._guided, self._candidates(view)))
        return self._guide_made[1]

    def _has_nothing_to_name(self, view: View) -> bool:
        """True where a guided answer could name no candidate: no server takes an empty list."""
        guide = self._guide(view)
        return guide is not None and not guide.names

    def _exchange(
        self, view: View, attempt: int, messages: list[Message], *, is_shortest: bool
    ) -> Mapping[str, Any]:
        base = 0 if self._seed is None else self._seed
        seed = generation_seed(base, round=view.round, attempt=attempt)
        request: dict[str, Any] = {
            "kind": "chat",
            "round": view.round,
            "attempt": attempt,
            "model": self._client.name,
            "messages": messages,
            "sampling": {**self._sampling.to_dict(), "seed": seed if self._sampling.seed else None},
        }
        guide = self._guide(view)
        if guide is not None:
            request["guided"] = guide.request()
        journal = Unrecorded() if self._journal is None else self._journal

        def answer() -> Mapping[str, Any]:
            body = None if guide is None else guide.extra_body(view.slots)
            try:
                return self._client.complete(messages, seed=seed, extra_body=body)
            except ContextOverflow as refusal:
                if is_shortest:
                    # A failure, not an answer: with a longer context it may be asked again.
                    msg = f"{self._too_long(messages)} {refusal}"
                    raise ProposerFailed(msg) from None
                return {"overflow": True, "said": str(refusal)}

        return journal.exchange(request, answer)
