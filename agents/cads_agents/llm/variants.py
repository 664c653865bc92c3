"""More agents over the same parts, a few lines each.

`llm-shortlist` ranks within the best of a public prior, `llm-handoff` leaves the screen to another
agent after some rounds, `llm-retry` is told what was refused, `llm-no-history` is told nothing of
the screen's course. Never changes what an attempt is or how it is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from cads_agents.llm.prompts import HISTORY, Prompt
from cads_agents.llm.proposer import LLMProposer
from cads_agents.module_learner import ModuleLearner
from cads_agents.prior import PriorRanking
from cads_agents.ranking import untested_names
from cads_env.errors import AgentError, quoted, suggest
from cads_env.proposer import Journal, Proposal, Proposer, View

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    Model: TypeAlias = str | Mapping[str, Any] | BaseChatModel
    PromptSource: TypeAlias = str | Path | Mapping[str, Any] | Prompt | None

HEIRS: Final = ("prior", "module-learner")
"""Agents that a screen may be handed to."""


class NoHistoryProposer(LLMProposer):
    """Asks without a word of the screen's course: what the model knows of the names alone."""

    default_prompt: ClassVar[str] = "no-history"

    def __init__(self, model: Model, *, prompt: PromptSource = None, **options: Any) -> None:
        """As `LLMProposer`.

        Args:
            model: As there.
            prompt: One that shows no list of the screen's course.
            **options: As there.

        Raises:
            AgentError: The prompt shows such a list.
        """
        super().__init__(model, prompt=prompt, **options)
        shown = sorted(self.prompt.placeholders & HISTORY)
        if shown:
            msg = (
                f"Prompt {self.prompt.name!r} shows {', '.join(f'${x}' for x in shown)}; "
                "llm-no-history needs one that tells nothing of the screen's course, such as "
                "'no-history'. Use the agent llm for this prompt."
            )
            raise AgentError(msg)


class RetryProposer(LLMProposer):
    """Tells a further attempt of a round what was refused, and why."""

    default_prompt: ClassVar[str] = "retry"

    def __init__(self, model: Model, *, prompt: PromptSource = None, **options: Any) -> None:
        """As `LLMProposer`.

        Args:
            model: As there.
            prompt: One with a `retry` text.
            **options: As there.

        Raises:
            AgentError: The prompt has no such text.
        """
        super().__init__(model, prompt=prompt, **options)
        if not self.prompt.retry:
            msg = (
                f"Prompt {self.prompt.name!r} has no text under `retry`; llm-retry needs one, as "
                "the prompt 'retry' has."
            )
            raise AgentError(msg)


class ShortlistProposer(LLMProposer):
    """Ranks within a list: the best untested candidates of a public side table."""

    default_prompt: ClassVar[str] = "shortlist"
    requires: tuple[str, ...] = ("prior",)

    def __init__(
        self,
        model: Model,
        *,
        prompt: PromptSource = None,
        shortlist: int = 100,
        table: str = "prior",
        **options: Any,
    ) -> None:
        """As `LLMProposer`.

        Args:
            model: As there.
            prompt: One that shows `$candidates`.
            shortlist: Candidates on the list, at least 1.
            table: A numeric side table of the registry, higher = more promising.
            **options: As there.

        Raises:
            AgentError: An option is unusable.
        """
        super().__init__(model, prompt=prompt, **options)
        if type(shortlist) is not int or shortlist < 1:
            msg = f"shortlist is {quoted(shortlist)}; expected a whole number of at least 1."
            raise AgentError(msg)
        if "candidates" not in self.prompt.placeholders:
            msg = (
                f"Prompt {self.prompt.name!r} does not show $candidates; llm-shortlist needs one "
                "that does, as 'shortlist' is."
            )
            raise AgentError(msg)
        self.requires = (table,)
        self._shortlist = shortlist
        self._ranking: list[str] = []

    def _candidates(self, view: View) -> Sequence[str]:
        if not self._ranking:
            scores = np.asarray(view.side_tables[self.requires[0]].values, np.float64)
            order = np.argsort(-scores, kind="stable")
            self._ranking = [view.identifiers[i] for i in order.tolist()]
        return untested_names(self._ranking, view, most=self._shortlist)


class HandoffProposer(LLMProposer):
    """Asks the model for some rounds, then leaves the screen to an agent without one.

    Attributes:
        requires: Side tables that the heir needs.
    """

    requires: tuple[str, ...] = ("prior",)

    def __init__(
        self,
        model: Model,
        *,
        to: str = "prior",
        after: int | None = None,
        below: float | None = None,
        seed: int | None = None,
        journal: Journal | None = None,
        **options: Any,
    ) -> None:
        """As `LLMProposer`.

        Args:
            model: As there.
            to: Who plays on: "prior" or "module-learner".
            after: Rounds that the model plays; None: 4, or all where `below` is given.
            below: The model's last round is the first in which its answer fills less than this
                share of its slots, in (0, 1]; None: no such rule.
            seed: As there.
            journal: As there.
            **options: As there.

        Raises:
            AgentError: An option is unusable.
        """
        super().__init__(model, seed=seed, journal=journal, **options)
        if to not in HEIRS:
            msg = f"to is {quoted(to)}. {suggest(str(to), HEIRS)}"
            raise AgentError(msg)
        if after is not None and (type(after) is not int or after < 0):
            msg = f"after is {quoted(after)}; expected a whole number of rounds, 0 or more."
            raise AgentError(msg)
        is_share = isinstance(below, int | float) and not isinstance(below, bool)
        if below is not None and not (is_share and 0 < below <= 1):
            msg = f"below is {quoted(below)}; expected a share above 0 and at most 1."
            raise AgentError(msg)
        self._to, self._below = to, below
        self._after = 4 if after is None and below is None else after
        self._heir: Proposer | None = None
        self._has_failed_rule = False
        self.requires = ("prior",) if to == "prior" else ("module",)

    def preview(self, view: View) -> Mapping[str, Any]:
        """As `LLMProposer.preview`; without messages after the last of a fixed number of rounds."""
        if self._is_over(view):
            return {"messages": [], "tokens_in": 0, "tokens_out_most": 0}
        return super().preview(view)

    def propose(self, view: View) -> Proposal:
        """The model's names, or from the handoff on the heir's."""
        if not (self._is_over(view) or self._has_failed_rule):
            answer = super().propose(view)
            self._has_failed_rule = self._falls_short(view, answer)
            return answer
        if self._heir is None:
            self._heir = (
                PriorRanking() if self._to == "prior" else ModuleLearner(seed=self._seed or 0)
            )
        names = self._heir.propose(view)
        return Proposal(tuple(names), usage={"requests": 0, "handed_off": 1})  # type: ignore[arg-type]

    def _is_over(self, view: View) -> bool:
        return self._after is not None and view.round >= self._after

    def _falls_short(self, view: View, answer: Proposal) -> bool:
        if self._below is None or not view.slots:
            return False
        untested = set(view.identifiers).difference(view.tested)
        filled = len(untested.intersection(answer.identifiers))
        return filled < self._below * view.slots
