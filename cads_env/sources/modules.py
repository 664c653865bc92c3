"""Gene symbols of the synthetic registries, and their partition into modules of about 25.

Symbols come from the shipped plain list; a smaller registry is one fixed keyed subset of it.
Modules are symbol families: related symbols share a prefix. Never looks at an effect or an
annotation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from cads_env.errors import RegistryError
from cads_env.tape import derive_key

LARGEST_MODULE: Final = 25
"""Families above this size are cut, and symbols without a family are packed, into such blocks."""

SMALLEST_FAMILY: Final = 10
"""Members below which symbols that share a letter prefix are no family."""

SMALLEST_COMPLEX: Final = 6
"""The same for the complexes named below, which are small by nature (the eight CCT subunits)."""

COMPLEXES: Final = (
    "CCT",
    "EIF",
    "MCM",
    "MRPL",
    "MRPS",
    "NDUF",
    "POLR",
    "PSM",
    "RPL",
    "RPS",
    "SNRP",
)
"""Roots whose subunits carry further letters (PSMA1, RPLP0), so that the root is the family."""

UNGROUPED: Final = "OTHER"
"""Label of the blocks of symbols without a family. No symbol family has this prefix."""

_LETTERS: Final = re.compile(r"[A-Za-z]*")


@cache
def symbol_subset(m: int) -> tuple[str, ...]:
    """The m gene symbols of a registry of that size, in alphabetical order.

    Those with the smallest keys, so that a smaller set is part of every larger one.

    Raises:
        RegistryError: The list has fewer symbols.
    """
    path = files("cads_env.sources") / "data" / "human_gene_symbols.txt"
    symbols = path.read_text(encoding="utf-8").split()
    if m > len(symbols):
        msg = f"m={m} is more than the {len(symbols)} gene symbols that there are."
        raise RegistryError(msg)
    ranked = sorted(
        symbols, key=lambda symbol: (derive_key("symbol-subset", symbol=symbol), symbol)
    )
    return tuple(sorted(ranked[:m]))


def family(symbol: str) -> str:
    """The family a symbol would belong to: a complex's root, else the letters it starts with."""
    return next(
        (root for root in COMPLEXES if symbol.startswith(root)),
        _LETTERS.match(symbol)[0],  # type: ignore[index]
    )


def module_labels(symbols: Sequence[str]) -> tuple[str, ...]:
    """The module of each symbol, such as "RPL-1"; no module has more than `LARGEST_MODULE` members.

    Args:
        symbols: Unique, in alphabetical order.

    Returns:
        One label a symbol, in the same order.
    """
    families: dict[str, list[str]] = defaultdict(list)
    for symbol in symbols:
        families[family(symbol)].append(symbol)
    ungrouped: list[str] = []
    module: dict[str, str] = {}
    for name, members in families.items():
        if len(members) < (SMALLEST_COMPLEX if name in COMPLEXES else SMALLEST_FAMILY):
            ungrouped += members
        else:
            module.update(_numbered(name, members))
    module.update(_numbered(UNGROUPED, sorted(ungrouped)))
    return tuple(module[symbol] for symbol in symbols)


def _numbered(name: str, members: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each member with its block's label: as few near-equal blocks as the size limit allows."""
    count = -(-len(members) // LARGEST_MODULE)
    for i, member in enumerate(members):
        yield member, f"{name}-{i * count // len(members) + 1}"
