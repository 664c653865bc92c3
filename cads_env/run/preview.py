"""What agents would ask of the world outside, estimated without asking it.

Plays the proposer-removed loop and shows its views to agents that have `preview(view)`, which gives
the messages of a request and estimates of its tokens. Proposes nothing and scores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cads_env.campaign import open_screen, play
from cads_env.errors import AgentError
from cads_env.proposer import Proposer, View
from cads_env.protocol import Protocol
from cads_env.registry import Oracle, Registry, RelabelMode, relabel
from cads_env.run.agents import AgentSpec
from cads_env.run.plan import proposer_seed


class Request(NamedTuple):
    """The first request of a round.

    Attributes:
        round: The round, from 0.
        messages: Role and text of each message.
        tokens_in: Estimated tokens of the prompt.
        tokens_out_most: Most tokens of an answer.
    """

    round: int
    messages: tuple[tuple[str, str], ...]
    tokens_in: int
    tokens_out_most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What one campaign of an arm would ask.

    Attributes:
        arm: Its name.
        requests: One for each round in which it asks; None when the agent shows nothing ahead.
        attempts: Most requests in one round.
    """

    arm: str
    requests: tuple[Request, ...] | None
    attempts: int

    @property
    def tokens_in(self) -> int:
        """Estimated tokens of the prompts, one request a round."""
        return sum(request.tokens_in for request in self.requests or ())

    @property
    def tokens_out_most(self) -> int:
        """Most tokens of the answers, one request a round."""
        return sum(request.tokens_out_most for request in self.requests or ())


def preview(
    specs: Sequence[AgentSpec],
    *,
    pair: tuple[Registry, Oracle],
    seed: int,
    protocol: Protocol,
    identifiers: RelabelMode = "named",
) -> list[Preview]:
    """What a campaign of each arm would ask.

    The lists of tested candidates are those of the proposer-removed loop: as long as the arm's own,
    with other names in them.

    Args:
        specs: From `resolve_agents`.
        pair: Registry and oracle, as for `relabel`.
        seed: The campaign seed.
        protocol: The protocol.
        identifiers: How candidates are relabelled.

    Raises:
        AgentError: An agent's preview is not what it should be.
    """
    # The seed of a campaign's relabelling is the campaign's.
    registry, oracle = relabel(*pair, identifiers, seed)
    found = []
    for spec in specs:
        agent = spec.build(proposer_seed(pair[1], seed))
        watcher = _Watcher(agent, spec.name)
        if watcher.shows:
            play(open_screen([(registry, oracle)], [seed], protocol), [watcher])
        requests = tuple(watcher.requests) if watcher.shows else None
        found.append(Preview(arm=spec.name, requests=requests, attempts=watcher.attempts))
    return found


class _Watcher:
    """Proposes nothing and asks an agent what it would say to each view."""

    def __init__(self, agent: Proposer, arm: str) -> None:
        self._agent: Any = agent
        self._arm = arm
        self.shows = callable(getattr(agent, "preview", None))
        self.requests: list[Request] = []
        self.attempts = 1

    def propose(self, view: View) -> Sequence[str]:
        """Nothing."""
        self.attempts = view.attempts
        if view.slots:
            shown = self._agent.preview(view)
            if shown and shown.get("messages"):
                self.requests.append(_request(shown, view.round, self._arm))
        return ()


def _request(shown: Mapping[str, Any], number: int, arm: str) -> Request:
    try:
        messages = tuple((str(m["role"]), str(m["content"])) for m in shown["messages"])
        return Request(number, messages, int(shown["tokens_in"]), int(shown["tokens_out_most"]))
    except (KeyError, TypeError, ValueError) as error:
        msg = (
            f"Agent {arm!r}: preview(view) gave {list(shown)!r:.200}; expected messages (with role "
            "and content), tokens_in and tokens_out_most."
        )
        raise AgentError(msg) from error
