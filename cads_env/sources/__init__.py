"""The catalogue of registry sources: what exists, its options, and where its loader lives.

One file a source. A loader turns options into one (Registry, Oracle) pair and is imported only when
it is used, so that the catalogue costs nothing. Names, panels and paths are resolved in
`cads_env.panel`, never here.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

from cads_env.registry import Oracle, Registry

COMMON_OPTIONS: Final = ("subsample", "subsample_seed", "salt")
"""Options of every source: size and seed of a keyed random subset, and a private panel's secret."""

SPLITS: Final[Mapping[str, range]] = MappingProxyType(
    {"train": range(1, 513), "dev": range(513, 545), "eval": range(545, 577)}
)
"""Instance numbers of each split of a synthetic panel. Instance 0 is in none."""


@dataclass(frozen=True, kw_only=True)
class SourceInfo:
    """One source of registries.

    Attributes:
        name: What `load_registry` calls it.
        summary: One line for a catalogue.
        options: Names of its own options, besides `COMMON_OPTIONS`.
        target: `module:function` of the loader.
        extra: Optional dependency group that it needs, or None.
        splits: Instance numbers by split name; empty when the source is one registry.
        renaming: Options whose value is part of the registry's name when it is not the default
            given here.
    """

    name: str
    summary: str
    options: tuple[str, ...]
    target: str
    extra: str | None = None
    splits: Mapping[str, range] = field(default_factory=lambda: MappingProxyType({}))
    renaming: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def has_instances(self) -> bool:
        """True when `name/7` is the source's instance 7."""
        return "instance" in self.options

    def load(self, *, name: str, **options: Any) -> tuple[Registry, Oracle]:
        """One registry of this source and its oracle.

        Args:
            name: What the registry is to be called.
            **options: The source's own options, and `salt` (bytes).

        Raises:
            RegistryError: An option or the data is not usable.
            MissingExtraError: An optional package is missing.
        """
        module, function = self.target.split(":")
        loader = getattr(importlib.import_module(module), function)
        return cast("tuple[Registry, Oracle]", loader(self.name, name=name, **options))


_TABLE_OPTIONS: Final = (
    "path", "name", "sep", "identifier", "effect", "label", "direction", "threshold", "signal",
    "description", "prior", "prior_direction", "module", "features", "drop_missing",
)  # fmt: skip


def _synthetic_depmap(name: str, m: str) -> SourceInfo:
    return SourceInfo(
        name=name,
        summary=f"{m} human genes; effects drawn from the distribution of a DepMap screen. "
        "Synthetic: plumbing and calibration, not biology.",
        options=("instance", "structure", "name_information"),
        target="cads_env.sources.synthetic:load_depmap",
        splits=SPLITS,
        renaming=MappingProxyType({"structure": 0.4}),
    )


SOURCES: Final[Mapping[str, SourceInfo]] = MappingProxyType(
    {
        info.name: info
        for info in (
            _synthetic_depmap("synthetic-depmap", "18,159"),
            _synthetic_depmap("synthetic-depmap-6000", "6,000"),
            SourceInfo(
                name="synthetic-scale",
                summary="Made-up identifiers in any number (a million unless said), with "
                "independent effects; for measuring cost.",
                options=("instance", "m"),
                target="cads_env.sources.synthetic:load_scale",
                renaming=MappingProxyType({"m": 1_000_000}),
            ),
            SourceInfo(
                name="table",
                summary="Your own CSV or TSV: one row a candidate, with an effect, a label or "
                "both; columns, direction and threshold are declared.",
                options=_TABLE_OPTIONS,
                target="cads_env.sources.table:load_table",
            ),
            SourceInfo(
                name="depmap-26q1-mean",
                summary="DepMap 26Q1 mean gene effects over 1,208 cell lines, 13,152 genes, read "
                "from the installed package egbench.",
                options=(),
                target="cads_env.sources.packages:load_depmap_mean",
                extra="data",
            ),
        )
    }
)
"""Every source by name."""
