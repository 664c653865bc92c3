"""Text from outside: values as people type them, YAML files, and what agents say.

Nothing here raises anything but `ValueError`, whatever the text.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

_EXPONENT: Final = re.compile(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+$")
_SHOWN: Final = 500
"""Characters of somebody's text that a message or a log keeps."""


class _Loader(yaml.SafeLoader):
    """Safe YAML that reads 1e-5 as a number, and knows no aliases and no doubled keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases: a short file could unfold into one of any size."""
        if self.check_event(yaml.AliasEvent):
            msg = "it uses an alias (*name); write the value out"
            raise yaml.YAMLError(msg)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Refuse a key that is there twice: the last would win without a word."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    msg = f"it has the key {key.value!r} twice (line {key.start_mark.line + 1})"
                    raise yaml.YAMLError(msg)
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


class _Dumper(yaml.SafeDumper):
    """Safe YAML that quotes whatever text `_Loader` would read as a number."""


# YAML 1.1 wants a point in a float.
for _one in (_Loader, _Dumper):
    _one.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


def load_yaml(text: str) -> Any:
    """What a YAML document holds.

    Args:
        text: The document.

    Raises:
        ValueError: It is no plain YAML; the message is one line.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    # Constructors of odd tags raise whatever they stumble on.
    except (Exception, RecursionError) as error:
        msg = " ".join(str(error).split())[:_SHOWN] or type(error).__name__
        raise ValueError(msg) from error


def dump_yaml(content: Any) -> str:
    """A YAML document that `load_yaml` reads back as it was.

    Args:
        content: Plain values in lists and mappings, whose order is kept.
    """
    return str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def parse_value(text: str) -> Any:
    """What a typed value means.

    Args:
        text: Read as YAML; text that is no YAML stays text.

    Returns:
        A number, bool, None, text, list or mapping.
    """
    # A pair in round brackets is a list, as people write it in Python.
    if text == "None":
        return None
    is_pair = text.startswith("(") and text.endswith(")")
    try:
        return load_yaml(f"[{text[1:-1]}]" if is_pair else text)
    except ValueError:
        return text


def said(error: BaseException) -> str:
    """What an exception says, as a file or a terminal can hold it, even if it cannot say it."""
    try:
        text = str(error)
    # Somebody's __str__ raises whatever it likes.
    except Exception:
        text = "(its message cannot be shown)"
    return plain_text(text)


def plain_text(text: str, limit: int = _SHOWN) -> str:
    """Somebody's text as a file or a terminal can hold it: cut, without lone surrogates."""
    cut = text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"
    return cut.encode("utf-8", "replace").decode("utf-8")
