"""`TextScreenEnv`: one screen as a text environment, the same campaign as `ScreenEnv` in words.

Its docstring is its specification. Never reads an answer itself: `cads_env.parse_proposal` does.
"""

from __future__ import annotations

from typing import Any, Final

from gymnasium import spaces

from cads_env.delivery import resolve
from cads_env.envs.one_screen import OneScreenEnv
from cads_env.envs.skin import Info
from cads_env.envs.text_form import characters_of, longest_text, text_of
from cads_env.envs.text_space import AnswerText, checked_answer
from cads_env.panel import Panel
from cads_env.parsing import ParsedProposal, parse_proposal
from cads_env.proposer import Proposal
from cads_env.protocol import Protocol

UNREAD: Final = ParsedProposal((), (), (), False)
"""What info counts before the first answer."""


class TextScreenEnv(OneScreenEnv[str, str]):
    """A discovery screen in words: each round, answer with names; read which ones are high or low.

    ## Description

    The campaign of `ScreenEnv`, for language models: the same slots, fallback, reads, seeds and
    twin. The same names in the same order give the same bytes.

    ## Action Space

    Text of 0 to 20,000 characters of any script, without control characters (`playable_text` makes
    any text one). `cads_env.parse_proposal` reads names out of it: a list of lines, commas or JSON
    is best. The first valid ones, up to the round's slots, are accepted; what is no candidate,
    repeated, already tested or too much is counted. An answer without a name proposes nothing.

    ## Observation Space

    `Text` of printable characters and line breaks: the round and its slots; description, assay and
    what high means; all candidates, where there are at most 500, else three examples; those tested,
    high and low apart (or, under feedback "none", together); and of the last answer what was
    accepted and refused, at most 40 names of each. The longest text is computed for registry and
    protocol; a registry with longer or other names widens the space when it is first played.

    ## Starting State

    Nothing is read. `reset(seed=k)` plays campaign k on registry `panel[k % len(panel)]`, the same
    as `ScreenEnv`. `reset()` draws k from `np_random`. `options={"registry": i}` names a position
    in the panel instead.

    ## Rewards

    0 in every step. `CertificateWrapper`, which `gym.make` puts around this environment, pays the
    net (or the certified discoveries) at the end.

    ## Episode End

    `terminated` after the last round; never truncated. A further step raises `ActionError`.

    ## Information

    The keys of `ScreenEnv`, and of the last answer `parse_proposed` (names of candidates),
    `parse_invalid`, `parse_duplicate` and `parse_unparsed` (1 when nothing could be read, else 0).

    ## Arguments

    `gym.make("CADSScreenText-v0", registry=..., protocol=..., reward=..., render_mode=...,
    **overrides)`, as for `ScreenEnv`.

    ## Version History

    * v0: first version. A change that may change results raises the number; so does a change of
      the words.
    """

    metadata: dict[str, Any] = OneScreenEnv.metadata

    def __init__(self, panel: Panel, protocol: Protocol, *, render_mode: str | None = None) -> None:
        """An environment over a panel whose registries have one size.

        Args:
            panel: The registries; campaign k plays number k % len(panel).
            protocol: The rules.
            render_mode: "ansi", "rgb_array" or None.

        Raises:
            RegistryError: The registries are known to differ in size.
            ProtocolError: The protocol's law is unusable.
            ActionError: Unknown render mode.
        """
        super().__init__(panel, protocol, render_mode=render_mode)
        self.action_space: AnswerText = AnswerText()
        self._fitted = ""
        self._hold(0, frozenset())

    @property
    def no_proposal(self) -> str:
        """The action that proposes nothing."""
        return ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, Info]:
        """Start a campaign.

        Args:
            seed: The campaign; None draws one from `np_random`.
            options: `{"registry": i}` plays position i of the panel.

        Raises:
            ActionError: Unknown option or position.
            RegistryError: The registry has another size than the panel's first.
        """
        super().reset(seed=seed)
        _, info = self._start(seed, options)
        if self._fitted != self.registry.hash:
            self._hold(self.observation_space.max_length, self.observation_space.character_set)
        return text_of(self.view), info | _counts(UNREAD)

    def step(self, action: object) -> tuple[str, float, bool, bool, Info]:
        """Play one round.

        Args:
            action: The answer: at most 20,000 characters of text.

        Raises:
            ActionError: No such text, or the campaign is over.
        """
        screen = self._going_on()
        text = checked_answer(action)
        parsed = parse_proposal(text, self.registry.identifiers)
        entries = (*parsed.proposed, *parsed.invalid, *parsed.duplicate)
        info = self._played(resolve(Proposal(entries, raw=text), self.registry.index))
        return text_of(self.view), 0.0, screen.is_done, False, info | _counts(parsed)

    def _hold(self, length: int, characters: frozenset[str]) -> None:
        """Widen the observation space so that it holds every text of the present registry."""
        registry = self.registry
        longest = max(length, longest_text(registry, self.protocol))
        wider = characters | characters_of(registry)
        if (length, characters) != (longest, wider):
            self.observation_space: spaces.Text = spaces.Text(longest, charset=wider)
        self._fitted = registry.hash


def _counts(parsed: ParsedProposal) -> Info:
    return {
        "parse_proposed": len(parsed.proposed),
        "parse_invalid": len(parsed.invalid),
        "parse_duplicate": len(parsed.duplicate),
        "parse_unparsed": int(parsed.unparsed),
    }
