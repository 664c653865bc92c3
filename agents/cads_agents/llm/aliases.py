"""Other names of candidates, from a file: off by default, and counted apart where they are used.

A table of two columns (alias, tab, identifier) or a YAML mapping of aliases to identifiers. Never
guesses: an alias of two candidates is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from cads_env.errors import AgentError, error_text, quoted
from cads_env.values import load_yaml


def load_aliases(source: str | Path | Mapping[str, str] | None) -> dict[str, str] | None:
    """Identifiers by alias.

    Args:
        source: A path (.tsv, .txt, .yaml or .yml), the mapping itself, or None for none.

    Raises:
        AgentError: The file cannot be read, or an alias is no text or names two candidates.
    """
    if source is None:
        return None
    if isinstance(source, Mapping):
        return _checked(source.items(), "aliases")
    if not isinstance(source, str | Path):
        msg = f"aliases is {quoted(source)}; expected a path or a mapping of aliases to names."
        raise AgentError(msg)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        msg = f"Alias file {quoted(str(path))} cannot be read: {error_text(error)}."
        raise AgentError(msg) from error
    label = f"Alias file {quoted(str(path))}"
    if path.suffix in {".yaml", ".yml"}:
        return _checked(_of_yaml(text, label).items(), label)
    return _checked(_of_table(text, label), label)


def _of_yaml(text: str, label: str) -> Mapping[object, object]:
    try:
        content = load_yaml(text)
    except ValueError as error:
        msg = f"{label} is not valid YAML: {error}"
        raise AgentError(msg) from error
    if not isinstance(content, Mapping):
        msg = f"{label} holds a {type(content).__name__}; expected a mapping, alias: identifier."
        raise AgentError(msg)
    return content


def _of_table(text: str, label: str) -> list[tuple[object, object]]:
    pairs: list[tuple[object, object]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 2:
            msg = (
                f"{label}, line {number}, has {len(cells)} columns; expected two, alias and "
                "identifier, with one tab between them."
            )
            raise AgentError(msg)
        pairs.append((cells[0].strip(), cells[1].strip()))
    return pairs


def _checked(pairs: Iterable[tuple[object, object]], label: str) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for alias, identifier in pairs:
        if not (isinstance(alias, str) and isinstance(identifier, str) and alias and identifier):
            msg = (
                f"{label}: {quoted(alias)} stands for {quoted(identifier)}; expected text for text "
                "(quote a name that looks like a number or a date)."
            )
            raise AgentError(msg)
        if aliases.setdefault(alias, identifier) != identifier:
            msg = (
                f"{label}: alias {quoted(alias)} stands for {quoted(aliases[alias])} and for "
                f"{quoted(identifier)}; leave out an alias of several candidates."
            )
            raise AgentError(msg)
    if not aliases:
        msg = f"{label} holds no alias; leave the option out to use none."
        raise AgentError(msg)
    return aliases
