"""Prompts as files: a name, a version, two declared factors and the texts, checked when loaded.

A prompt is YAML with `$placeholders` in its texts; `load_prompt` takes the name of one that comes
with the package, a path, or the mapping that a run's manifest holds. Never fills a placeholder and
never sees a view.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Final

from cads_env.errors import AgentError, error_text, quoted, suggest
from cads_env.values import load_yaml

PLACEHOLDERS: Final = (
    "description", "assay", "high_means", "slots", "round", "rounds",
    "high", "low", "tested", "candidates", "refused", "accepted",
)  # fmt: skip
"""What a prompt's texts may ask for, as `$description` and so on."""

HISTORY: Final = frozenset({"high", "low", "tested", "refused", "accepted"})
"""Placeholders that tell of the screen's course so far."""

RETRY_PLACEHOLDERS: Final = ("accepted", "refused", "slots")
"""Placeholders of the text that a further attempt of a round is told."""

_TEXTS: Final = ("system", "user", "retry")
_REQUIRED: Final = ("name", "version", "tested_list", "asks_unseen", "user")
_KEYS: Final = (*_REQUIRED, "system", "retry", "sha256")


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The texts of one prompt and what it declares about itself.

    Attributes:
        name: What arms and tables call it.
        version: Counts its editions from 1.
        tested_list: Whether the tested candidates are listed, low ones too.
        asks_unseen: Whether it asks for candidates that were not tested before.
        system: Template of the system message; empty for none.
        user: Template of the user message.
        retry: Template of what a further attempt of a round is told; empty where it is told
            nothing. In it `$accepted` and `$refused` are of the attempts before it, and `$slots`
            counts the slots still open.
    """

    name: str
    version: int
    tested_list: bool
    asks_unseen: bool
    system: str = field(default="", repr=False)
    user: str = field(repr=False)
    retry: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Check types, placeholders and the declared list.

        Raises:
            AgentError: Names the key, what it holds and what was expected.
        """
        _check_types(self)
        for key in _TEXTS:
            _check_placeholders(self.name, key, getattr(self, key))
        lists = bool(self.placeholders & {"tested", "low"})
        if lists != self.tested_list:
            msg = (
                f"Prompt {self.name!r} declares tested_list: {str(self.tested_list).lower()}, but "
                f"its texts {'use' if lists else 'do not use'} $tested or $low. Declare what the "
                "texts do: the factor is read from there."
            )
            raise AgentError(msg)

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """What the system and user texts ask for."""
        return frozenset(_names(self.system) + _names(self.user))

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the content as canonical JSON (sorted keys, compact, ASCII)."""
        text = json.dumps(self._content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def mapping(self) -> dict[str, Any]:
        """The whole prompt as JSON values, from which `load_prompt` builds it again."""
        return {**self._content(), "sha256": self.sha256}

    def _content(self) -> dict[str, Any]:
        keys = (*_REQUIRED[:4], *_TEXTS)
        return {key: getattr(self, key) for key in keys}


def prompt_names() -> tuple[str, ...]:
    """Names of the prompts that come with the package, sorted."""
    folder = resources.files("cads_configs") / "prompts"
    return tuple(
        sorted(p.name[: -len(".yaml")] for p in folder.iterdir() if p.name.endswith(".yaml"))
    )


def load_prompt(source: str | Path | Mapping[str, Any] | Prompt) -> Prompt:
    """The prompt of that name, file or content.

    Args:
        source: A name from `prompt_names()`, a path that ends in .yaml or .yml, the mapping of
            `Prompt.mapping`, or a prompt.

    Raises:
        AgentError: There is none, or it is not as `Prompt` says.
    """
    if isinstance(source, Prompt):
        return source
    if isinstance(source, Mapping):
        return _from_mapping(source, "the prompt given as a mapping")
    if not isinstance(source, str | Path):
        msg = (
            f"A prompt is a {type(source).__name__}; expected a name ({', '.join(prompt_names())}),"
            " a path that ends in .yaml, or a mapping."
        )
        raise AgentError(msg)
    label = f"prompt {quoted(str(source))}"
    try:
        content = load_yaml(_text(source))
    except ValueError as error:
        msg = f"The {label} is not valid YAML: {error}"
        raise AgentError(msg) from error
    if not isinstance(content, Mapping):
        msg = f"The {label} holds a {type(content).__name__}; expected {', '.join(_REQUIRED)}."
        raise AgentError(msg)
    return _from_mapping(content, f"the {label}")


def _text(source: str | Path) -> str:
    path = Path(source)
    if path.parts[:-1] == ("configs", "prompts") and not path.exists():
        # As the repository calls a file of the installed package.
        source, path = path.stem, Path(path.stem)
    if path.suffix in {".yaml", ".yml"}:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            what = error_text(error)
            msg = f"Prompt file {quoted(str(source))} cannot be read: {what}."
            raise AgentError(msg) from error
    if str(source) not in prompt_names():
        msg = (
            f"Unknown prompt {quoted(str(source))}. {suggest(str(source), prompt_names())} "
            "A file of your own is named by a path that ends in .yaml."
        )
        raise AgentError(msg)
    return (resources.files("cads_configs") / "prompts" / f"{source}.yaml").read_text("utf-8")


def _from_mapping(content: Mapping[str, Any], label: str) -> Prompt:
    for key in content:
        if key not in _KEYS:
            msg = f"Unknown key {quoted(key)} in {label}. {suggest(str(key), _KEYS)}"
            raise AgentError(msg)
    missing = [key for key in _REQUIRED if key not in content]
    if missing:
        msg = f"{label.capitalize()} has no {' and no '.join(missing)}; expected each of them."
        raise AgentError(msg)
    prompt = Prompt(**{key: value for key, value in content.items() if key != "sha256"})
    recorded = content.get("sha256", prompt.sha256)
    if recorded != prompt.sha256:
        msg = (
            f"Prompt {prompt.name!r} has sha256 {quoted(recorded)}, but its content gives "
            f"{prompt.sha256}: it was changed. Leave sha256 out of a prompt that you edit."
        )
        raise AgentError(msg)
    return prompt


def _check_types(prompt: Prompt) -> None:
    expected: tuple[tuple[str, type, str], ...] = (
        ("name", str, "text"),
        ("version", int, "a whole number"),
        ("tested_list", bool, "true or false"),
        ("asks_unseen", bool, "true or false"),
        *((key, str, "text") for key in _TEXTS),
    )
    for key, kind, words in expected:
        value = getattr(prompt, key)
        if type(value) is not kind:
            msg = f"A prompt's {key} is {quoted(value)}; expected {words}."
            raise AgentError(msg)
    name = prompt.name
    if not name or name != name.strip() or not name.isprintable() or len(name) > 100:
        msg = f"A prompt's name is {quoted(name)}; expected 1 to 100 printable characters."
        raise AgentError(msg)
    if prompt.version < 1:
        msg = f"Prompt {name!r} has version {prompt.version}; expected 1 or more."
        raise AgentError(msg)
    if not prompt.user.strip():
        msg = f"Prompt {name!r} has an empty user text; expected what the model is asked."
        raise AgentError(msg)


def _names(text: str) -> list[str]:
    return Template(text).get_identifiers()


def _check_placeholders(name: str, key: str, text: str) -> None:
    known = RETRY_PLACEHOLDERS if key == "retry" else PLACEHOLDERS
    listed = ", ".join(f"${x}" for x in known)
    if not Template(text).is_valid():
        msg = (
            f"The {key} text of prompt {name!r} holds a $ that begins no placeholder; write $$ for "
            f"a dollar sign. Placeholders: {listed}."
        )
        raise AgentError(msg)
    for found in _names(text):
        if found not in known:
            msg = (
                f"The {key} text of prompt {name!r} uses ${found[:80]}, which does not exist "
                f"there. Placeholders: {listed}."
            )
            raise AgentError(msg)
