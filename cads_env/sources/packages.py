"""Registries that come inside other installed Python packages.

The data file is located through the package's metadata and read in place; the package itself is
never imported, and nothing of it is copied.
"""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from cads_env.errors import MissingExtraError, RegistryError
from cads_env.registry import Oracle, Registry
from cads_env.registry_checks import check_identifiers, check_truth

PACKAGE: Final = "egbench"
DATA_FILE: Final = "datasets/GeneEffect/folds/common_continuous.parquet"
THRESHOLD: Final = -0.5
"""A gene is a hit when its mean effect is below this."""

_INSTALL: Final = "pip install 'cads-env[data]'"
_DESCRIPTION: Final = (
    "A genome-scale CRISPR knock-out fitness screen of {m:,} human genes: the mean gene effect "
    "over the 1,208 cancer cell lines of DepMap 26Q1. About 0 for a gene without effect, about -1 "
    "for a gene that nearly all lines need. A hit is a gene whose loss reduces fitness to a mean "
    "effect below -0.5."
)


def load_depmap_mean(source: str, *, name: str, salt: bytes = b"") -> tuple[Registry, Oracle]:
    """DepMap 26Q1 mean gene effects, from the package egbench; u = -effect - 0.5.

    Args:
        source: Name of the source; the panel in every random key.
        name: What the registry is to be called.
        salt: Secret of a private panel; changes the random streams.

    Raises:
        MissingExtraError: The package, its data file or the Parquet reader is missing.
        RegistryError: The file does not hold one finite effect a gene symbol.
    """
    path = _data_path()
    try:
        frame = pd.read_parquet(path, engine="pyarrow", columns=["gene_symbol", "gene_effect"])
        effects = frame["gene_effect"].to_numpy(np.float64)
    except (OSError, ValueError, KeyError) as error:
        msg = (
            f"The data file {DATA_FILE} of {PACKAGE} cannot be read ({type(error).__name__}); "
            "expected columns gene_symbol and gene_effect. Install it again: "
            f"{_INSTALL} --force-reinstall"
        )
        raise RegistryError(msg) from error
    identifiers = tuple(str(symbol) for symbol in frame["gene_symbol"])
    check_identifiers(identifiers, name)
    signal = THRESHOLD - effects
    labels = signal > 0.0
    check_truth(signal, labels, name, identifiers)
    registry = Registry(
        name=name, identifiers=identifiers, description=_DESCRIPTION.format(m=len(identifiers))
    )
    return registry, Oracle(signal, labels, source, 0, salt)


def _data_path() -> Path:
    try:
        entries = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError as error:
        msg = f"This registry is read from the package {PACKAGE}, which is missing: {_INSTALL}"
        raise MissingExtraError(msg) from error
    found = [Path(str(e.locate())) for e in entries if e.as_posix().endswith(DATA_FILE)]
    if not found or not found[0].is_file():
        msg = (
            f"{PACKAGE} {metadata.version(PACKAGE)} is installed without its data file "
            f"{DATA_FILE}. Install it again: {_INSTALL} --force-reinstall"
        )
        raise MissingExtraError(msg)
    if find_spec("pyarrow") is None:
        msg = f"Reading Parquet needs the package pyarrow, which is missing: {_INSTALL}"
        raise MissingExtraError(msg)
    return found[0]
