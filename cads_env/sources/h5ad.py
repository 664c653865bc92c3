"""One contrast of a differential expression file in AnnData's h5ad format, in bounded memory.

Expects one observation a (perturbation, condition), one variable a gene and one layer a statistic.
Reads names and one row of the layers that are asked for, with h5py alone. Never reads a whole
layer. The one kind of damage known to keep the HDF5 library busy for ever is looked for first; a
file damaged at random can still, once in thousands, crash that library and the process with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cads_env.errors import MissingExtraError, RegistryError, error_text, suggest
from cads_env.registry_checks import listed
from cads_env.sources.contrasts import (
    ADJUSTED,
    CONDITION,
    GENE_ID,
    SYMBOL,
    TARGET,
    Contrast,
    choose,
)
from cads_env.sources.hdf5_heaps import check_heaps

Float64s = NDArray[np.float64]

_INSTALL: Final = "pip install 'cads-env[h5ad]'"


def read_contrast(
    path: Path, *, target: str | None, condition: str | None, effect: str, wants_adjusted: bool
) -> Contrast:
    """One row of an h5ad file.

    Args:
        path: The file.
        target: The perturbed gene; None when there is only one.
        condition: The culture condition; None when the target has only one.
        effect: Layer of the effects.
        wants_adjusted: Whether adjusted p values are read, where there are any.

    Raises:
        MissingExtraError: The package h5py is missing.
        RegistryError: The file is not such an h5ad file, or the choice does not name one row.
    """
    with _opened(path) as file:
        pairs = _pairs(path, file)
        chosen = choose(path, pairs, target=target, condition=condition)
        at = [i for i, pair in enumerate(pairs) if pair == chosen]
        if len(at) > 1:
            msg = (
                f"{path} has {len(at)} observations of {chosen[0]!r} in {chosen[1]!r}, at "
                f"{listed(at)}. Remove all but one."
            )
            raise RegistryError(msg)
        symbols = _texts(path, file["var"], SYMBOL)
        ids = _texts(path, file["var"], GENE_ID) if GENE_ID in file["var"] else _index(path, file)
        layers = file.get("layers", {})
        effects = _row(path, layers, effect, at[0], len(symbols))
        adjusted = None
        if wants_adjusted and ADJUSTED in layers:
            adjusted = _row(path, layers, ADJUSTED, at[0], len(symbols), is_p=True)
    infinite = np.flatnonzero(np.isinf(effects))
    if infinite.size:
        msg = (
            f"{path}: {infinite.size} values of the layer {effect!r} are infinite: "
            f"{listed([symbols[int(i)] for i in infinite])}. Mend or remove those genes."
        )
        raise RegistryError(msg)
    return Contrast(*chosen, symbols, ids, effects, adjusted)


def contrasts_of(path: Path) -> list[tuple[str, str]]:
    """The (target, condition) of every observation.

    Args:
        path: The file.

    Raises:
        MissingExtraError: The package h5py is missing.
        RegistryError: The file is not such an h5ad file.
    """
    with _opened(path) as file:
        return _pairs(path, file)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The open file, with obs and var; errors of the format become ours."""
    if find_spec("h5py") is None:
        msg = f"Reading {path} needs the package h5py, which is missing: {_INSTALL}"
        raise MissingExtraError(msg)
    import h5py

    if path.is_dir():
        msg = f"{path} is a folder; expected a file."
        raise RegistryError(msg)
    try:
        check_heaps(path)
        with h5py.File(path, "r") as file:
            absent = [
                x for x in ("obs", "var", "layers") if not isinstance(file.get(x), h5py.Group)
            ]
            if absent:
                msg = (
                    f"{path} is no h5ad file of differential expression: it has no group "
                    f"{', '.join(map(repr, absent))}; it has {listed(sorted(file))}."
                )
                raise RegistryError(msg)
            yield file
    except RegistryError:
        raise
    # A damaged file fails in any of these ways, deep inside h5py or numpy.
    except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        why = " ".join(error_text(error).split())[:200]
        msg = (
            f"{path} cannot be read as an h5ad (HDF5) file: {why}. Check the path, or fetch the "
            "file again."
        )
        raise RegistryError(msg) from error


def _pairs(path: Path, file: Any) -> list[tuple[str, str]]:
    obs = file["obs"]
    pairs = list(zip(_texts(path, obs, TARGET), _texts(path, obs, CONDITION), strict=True))
    if not pairs:
        msg = f"{path} has no observations; expected one a perturbation and condition."
        raise RegistryError(msg)
    return pairs


def _index(path: Path, file: Any) -> list[str]:
    index = file["var"].attrs.get("_index", "_index")
    return _texts(path, file["var"], index) if index in file["var"] else []


def _texts(path: Path, frame: Any, name: str) -> list[str]:
    """A column of text of a data frame in any of AnnData's encodings."""
    import h5py

    where = frame.name.strip("/")
    if name not in frame:
        msg = (
            f"{path} has no column {name!r} in {where}; its columns are {listed(sorted(frame))}. "
            f"{suggest(name, frame)}"
        )
        raise RegistryError(msg)
    column = frame[name]
    if isinstance(column, h5py.Group):
        if "codes" in column:
            return _decoded(column["categories"], column["codes"])
        if "values" in column:  # nullable text
            texts = _strings(column["values"])
            mask = column["mask"][:] if "mask" in column else np.zeros(len(texts), np.bool_)
            return ["" if is_null else x for x, is_null in zip(texts, mask, strict=True)]
        msg = f"{path}: the column {name!r} of {where} is in an encoding that is not known here."
        raise RegistryError(msg)
    # AnnData before 0.8 kept categories beside the columns.
    if "__categories" in frame and name in frame["__categories"]:
        return _decoded(frame["__categories"][name], column)
    return _strings(column)


def _decoded(categories: Any, codes: Any) -> list[str]:
    if not hasattr(categories, "shape"):  # nullable text
        categories = categories["values"]
    words = _strings(categories)
    return ["" if code < 0 else words[code] for code in codes[:].tolist()]


def _strings(dataset: Any) -> list[str]:
    return [x.decode() if isinstance(x, bytes) else str(x) for x in dataset[:].tolist()]


def _row(path: Path, layers: Any, name: str, i: int, width: int, *, is_p: bool = False) -> Float64s:
    """Row i of a dense or CSR layer, shape (width,)."""
    import h5py

    if name not in layers:
        msg = f"{path} has no layer {name!r}; its layers are {listed(sorted(layers))}."
        raise RegistryError(msg)
    layer = layers[name]
    if isinstance(layer, h5py.Dataset):
        _check_width(path, name, layer.shape, width)
        return np.asarray(layer[i, :], np.float64)
    kind = str(layer.attrs.get("encoding-type", ""))
    if kind != "csr_matrix":
        msg = (
            f"{path}: the layer {name!r} is stored as {kind or 'an unknown kind'!r}; expected a "
            "dense array or a csr_matrix, of which one row can be read. Convert it to one."
        )
        raise RegistryError(msg)
    _check_width(path, name, tuple(layer.attrs["shape"]), width)
    start, stop = (int(x) for x in layer["indptr"][i : i + 2])
    # What a sparse layer leaves out is 0: no effect, but for a p value the strongest there is.
    if is_p and stop - start != width:
        msg = (
            f"{path}: the layer {name!r} is sparse and leaves out {width - (stop - start)} of "
            f"{width} genes; a p value that is left out would read as 0. Store it as a dense array."
        )
        raise RegistryError(msg)
    values = np.zeros(width, np.float64)
    values[layer["indices"][start:stop]] = layer["data"][start:stop]
    return values


def _check_width(path: Path, name: str, shape: Sequence[int], width: int) -> None:
    if len(shape) != 2 or shape[1] != width:
        msg = (
            f"{path}: the layer {name!r} has shape {tuple(int(x) for x in shape)}, but var names "
            f"{width} genes; expected one column a gene."
        )
        raise RegistryError(msg)
