"""The catalogue of registry sources: what exists, its options, and where its loader lives.

One file a source. A loader turns options into one (Registry, Oracle) pair and is imported only when
it is used, so that the catalogue costs nothing. Names, panels and paths are resolved in
`cads_env.panel`, never here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

from cads_env.registry import Oracle, Registry

COMMON_OPTIONS: Final = (
    "subsample", "subsample_seed", "salt", "assay", "high_means", "excel_names",
)  # fmt: skip
"""Options of every source: size and seed of a keyed random subset, a private panel's secret, words
that tell a proposer how a candidate is measured and what it means to read high, and
`excel_names=keep` for names that a spreadsheet has changed (not of generated sources)."""

SPLITS: Final[Mapping[str, range]] = MappingProxyType(
    {"train": range(1, 513), "dev": range(513, 545), "eval": range(545, 577)}
)
"""Instance numbers of each split of a synthetic panel. Instance 0 is in none."""

_NO_SPLITS: Final[Mapping[str, range]] = MappingProxyType({})


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
        paths: Options that name a file. One in a registry file is relative to that file; `path`,
            where it is among them, is required and its stem is the registry's name unless `name`
            says otherwise.
        member: Option that chooses one registry of a file that holds many, such as `line`; its
            value ends the registry's name, and its plural makes a panel of several.
        members: `module:function` that lists, given the source's options, all values of `member`;
            empty without `member`.
        problems: `module:function` that lists, given what the loader gets, everything for which it
            would refuse a file; empty where the loader's error is all there is.
    """

    name: str
    summary: str
    options: tuple[str, ...]
    target: str
    extra: str | None = None
    splits: Mapping[str, range] = field(default_factory=lambda: _NO_SPLITS)
    renaming: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    paths: tuple[str, ...] = ()
    member: str | None = None
    members: str = ""
    problems: str = ""

    @property
    def needs_path(self) -> bool:
        """True when the source reads a file of the user's."""
        return "path" in self.paths

    @property
    def has_instances(self) -> bool:
        """True when `name/7` is the source's instance 7."""
        return "instance" in self.options

    @property
    def common_options(self) -> tuple[str, ...]:
        """Those of `COMMON_OPTIONS` that it takes: a generator's names no spreadsheet changed."""
        return tuple(x for x in COMMON_OPTIONS if x != "excel_names" or not self.has_instances)

    def load(self, *, name: str, **options: Any) -> tuple[Registry, Oracle]:
        """One registry of this source and its oracle.

        Args:
            name: What the registry is to be called.
            **options: The source's own options, and `salt` (bytes).

        Raises:
            RegistryError: An option or the data is not usable.
            MissingExtraError: An optional package is missing.
        """
        loader = _function(self.target)
        return cast("tuple[Registry, Oracle]", loader(self.name, name=name, **options))

    def list_members(self, **options: Any) -> tuple[str, ...]:
        """Every value that `member` can take, in the order of the file.

        Args:
            **options: The source's own options, without `member`.

        Raises:
            RegistryError: The file is not usable.
        """
        return cast("tuple[str, ...]", _function(self.members)(**options))

    def list_problems(self, **options: Any) -> tuple[str, ...]:
        """Everything for which the loader would refuse a file, where `problems` can tell.

        Args:
            **options: What the loader gets, and `keeps_excel_names`.
        """
        return cast("tuple[str, ...]", _function(self.problems)(**options))


def _function(target: str) -> Callable[..., object]:
    module, name = target.split(":")
    return cast("Callable[..., object]", getattr(importlib.import_module(module), name))


_TABLE_OPTIONS: Final = (
    "path", "name", "sep", "identifier", "effect", "label", "direction", "threshold", "signal",
    "description", "prior", "prior_direction", "module", "features", "drop_missing",
)  # fmt: skip

_DEPMAP_OPTIONS: Final = (
    "path", "name", "line", "threshold", "dependency", "model", "prior", "held_out",
    "identifiers", "drop_missing",
)  # fmt: skip

_MAGECK_OPTIONS: Final = (
    "path", "name", "direction", "condition", "threshold", "fdr", "fdr_column", "signal",
    "description",
)  # fmt: skip

_ORCS_OPTIONS: Final = (
    "path", "name", "index", "screen", "score", "direction", "threshold", "label", "signal",
    "unknown", "duplicates", "description",
)  # fmt: skip

_PRISM_OPTIONS: Final = (
    "path", "name", "line", "measure", "threshold", "screen", "compounds", "names",
    "annotations", "description",
)  # fmt: skip

_PERTURBSEQ_OPTIONS: Final = (
    "path", "name", "target", "condition", "effect", "direction", "threshold", "adj_p", "signal",
    "identifiers", "drop_target", "description",
)  # fmt: skip


def _synthetic_depmap(name: str, m: str) -> SourceInfo:
    return SourceInfo(
        name=name,
        summary=f"{m} human genes; effects drawn from the distribution of a DepMap screen. "
        "Synthetic: plumbing and calibration, not biology.",
        options=("instance", "structure", "name_information"),
        target="cads_env.sources.synthetic:load_depmap",
        splits=SPLITS,
        renaming=MappingProxyType({"structure": 0.4, "name_information": 0.0}),
    )


def _cross_setting(name: str, summary: str, splits: Mapping[str, range] = _NO_SPLITS) -> SourceInfo:
    return SourceInfo(
        name=name,
        summary=f"{summary} Synthetic: plumbing and calibration, not biology.",
        options=("instance", "structure"),
        target=f"cads_env.sources.cross_settings:load_{name.rpartition('-')[2]}",
        splits=splits,
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
            _cross_setting(
                "synthetic-lines",
                "Lines 1 to 6 of one made-up release, 6,000 human genes: four tuned to published "
                "figures of DepMap 24Q4 lines, one with few hits and a heavy tail, one with many "
                "and a light one.",
                MappingProxyType({"all": range(1, 7)}),
            ),
            _cross_setting(
                "synthetic-tcell",
                "6,000 human genes; moderate effects, tuned to published figures of a T-cell "
                "Perturb-seq screen.",
            ),
            _cross_setting(
                "synthetic-prism",
                "6,000 compounds under made-up identifiers; strong effects, tuned to published "
                "figures of a PRISM line.",
            ),
            SourceInfo(
                name="table",
                summary="Your own CSV, TSV or Parquet: one row a candidate, with an effect, a "
                "label or both; columns, direction and threshold are declared.",
                options=_TABLE_OPTIONS,
                target="cads_env.sources.table:load_table",
                problems="cads_env.sources.table:problems_of",
                paths=("path",),
            ),
            SourceInfo(
                name="depmap",
                summary="Your own download of DepMap's CRISPRGeneEffect.csv (or the same with "
                "genes in rows): one cell line a registry, several a panel.",
                options=_DEPMAP_OPTIONS,
                target="cads_env.sources.depmap:load_depmap",
                paths=("path", "dependency", "model"),
                member="line",
                members="cads_env.sources.depmap:lines_of",
            ),
            SourceInfo(
                name="mageck",
                summary="The gene_summary.txt of `mageck test` or `mageck mle`: hits by log2 fold "
                "change, beta or false discovery rate.",
                options=_MAGECK_OPTIONS,
                target="cads_env.sources.mageck:load_mageck",
                paths=("path",),
                member="condition",
                members="cads_env.sources.mageck:conditions_of",
            ),
            SourceInfo(
                name="orcs",
                summary="A BioGRID ORCS screen file (.screen.tab.txt), with its index for what "
                "was screened.",
                options=_ORCS_OPTIONS,
                target="cads_env.sources.orcs:load_orcs",
                paths=("path", "index"),
                member="screen",
                members="cads_env.sources.orcs:screens_of",
            ),
            SourceInfo(
                name="prism",
                summary="PRISM Repurposing, primary or secondary screen: the compounds of one "
                "cell line a registry, several a panel.",
                options=_PRISM_OPTIONS,
                target="cads_env.sources.prism:load_prism",
                paths=("path", "compounds"),
                member="line",
                members="cads_env.sources.prism_files:lines_of",
                renaming=MappingProxyType({"measure": None}),
            ),
            SourceInfo(
                name="perturbseq",
                summary="Perturb-seq differential expression, as a long table or h5ad: the genes "
                "that one perturbation moves.",
                options=_PERTURBSEQ_OPTIONS,
                target="cads_env.sources.perturbseq:load_perturbseq",
                paths=("path",),
                member="target",
                members="cads_env.sources.perturbseq:targets_of",
                renaming=MappingProxyType({"condition": None}),
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
