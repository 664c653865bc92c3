"""Croissant metadata of exported files: what they are, their hashes, columns, types and keys.

A pure function of the manifest and of the files beside it, so that one run gives one text. Never
makes up what the run does not know: licence, creator and address are left to whoever publishes.

Source: MLCommons Croissant format, version 1.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cads_env.report.export.columns import KEY, Column, Kind, TableColumns

CONFORMS_TO: Final = "http://mlcommons.org/croissant/1.1"
LEFT_TO_PUBLISHER: Final = ("url", "license", "creator", "datePublished", "citeAs")
"""Properties that Croissant wants of a published data set and no run knows."""

_KEY_SETS: Final = {"arm": "arms", "registry": "registries", "seed": "seeds"}
_MEDIA_TYPES: Final = {".parquet": "application/x-parquet", ".csv": "text/csv"}
_DATA_TYPES: Final[Mapping[Kind, str]] = {
    "integer": "cr:Int64",
    "real": "cr:Float64",
    "flag": "sc:Boolean",
}
_SHAPES: Final[Mapping[Kind, str]] = {"texts": "-1", "text pairs": "-1,2"}
_IN_CSV: Final[Mapping[Kind, str]] = {
    "texts": " A JSON array.",
    "text pairs": " A JSON array of pairs.",
    "free text": " A JSON string.",
}
_CONTEXT: Final = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


class ExportedFile(NamedTuple):
    """One exported table.

    Attributes:
        path: Where it lies; its name goes into the metadata.
        table: Its columns.
        rows: Number of rows.
    """

    path: Path
    table: TableColumns
    rows: int


def croissant(
    files: Sequence[ExportedFile],
    manifest: Mapping[str, Any],
    *,
    keys: Mapping[str, Sequence[Any]],
    ended: str | None,
    played: int,
) -> dict[str, Any]:
    """The JSON-LD value of `croissant.json`.

    A table that lies there as Parquet and as CSV has one record set, read from the Parquet file.
    Croissant knows no foreign key of several columns, and a reader joins on each reference alone: a
    reference to a column of `campaigns` that is not unique there would multiply rows. The columns
    arm, registry and seed therefore refer to the record sets `arms`, `registries` and `seeds`,
    which list each value once.

    Args:
        files: What was exported, Parquet before CSV.
        manifest: The run's manifest.
        keys: Every value of arm, registry and seed, each once.
        ended: When the run ended, ISO 8601, or None.
        played: Campaigns that are there, scored or failed.
    """
    config = manifest.get("config", {})
    protocol = config.get("protocol", {}).get("name", "a protocol")
    first: dict[str, ExportedFile] = {}
    for file in files:
        first.setdefault(file.table.name, file)
    data: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": f"cads-env run: {protocol} on {config.get('panel', 'a registry')}",
        "description": _description(manifest, list(first.values()), played),
        "conformsTo": CONFORMS_TO,
        "version": "1.0.0",
        "isLiveDataset": False,
    }
    if ended is not None:
        data["dateCreated"] = ended
    data["distribution"] = [_file_object(file) for file in files]
    data["recordSet"] = [_key_set(name, keys[name]) for name in KEY]
    data["recordSet"] += [_record_set(file) for file in first.values()]
    return data


def _description(manifest: Mapping[str, Any], files: Sequence[ExportedFile], played: int) -> str:
    config, versions = manifest.get("config", {}), manifest.get("versions", {})
    certificate, protocol = config.get("certificate", {}), config.get("protocol", {})
    arms = ", ".join(str(agent.get("arm")) for agent in config.get("agents", []))
    counts = ", ".join(f"{file.rows} {file.table.name}" for file in files)
    planned = len(config.get("seeds", [])) * len(config.get("agents", []))
    part = ""
    if manifest.get("status") != "complete":
        part = f" The run is not complete: {played} of {planned} campaigns."
    return (
        f"Results of cads-env {versions.get('cads-env', '?')}: arms {arms} under protocol "
        f"{protocol.get('name')} (hash {manifest.get('protocol_hash')}) on {config.get('panel')} "
        f"with {config.get('identifiers')} identifiers, certificate q = {certificate.get('q')}, "
        f"{_bound(certificate)}, each campaign paired with its "
        f"proposer-removed twin. Rows: {counts}.{part} Columns {', '.join(KEY)} name a campaign."
    )


def _bound(certificate: Mapping[str, Any]) -> str:
    """What bounds contamination."""
    audit = certificate.get("audit")
    if not isinstance(audit, Mapping):
        return f"epsilon_bar = {certificate.get('epsilon_bar')}"
    return f"audited cap ({', '.join(f'{name} = {value}' for name, value in audit.items())})"


def _file_object(file: ExportedFile) -> dict[str, Any]:
    with file.path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return {
        "@type": "cr:FileObject",
        "@id": file.path.name,
        "name": file.path.name,
        "description": file.table.meaning,
        "contentUrl": file.path.name,
        "contentSize": f"{file.path.stat().st_size} B",
        "encodingFormat": _MEDIA_TYPES[file.path.suffix],
        "sha256": digest,
    }


def _key_set(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """The record set of the distinct values of one key column."""
    title = _KEY_SETS[name]
    return {
        "@type": "cr:RecordSet",
        "@id": title,
        "name": title,
        "description": f"Every {name} of the run, once.",
        "key": {"@id": f"{title}/{name}"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{title}/{name}",
                "name": name,
                "dataType": "cr:Int64" if name == "seed" else "sc:Text",
            }
        ],
        "data": [{f"{title}/{name}": value} for value in values],
    }


def _record_set(file: ExportedFile) -> dict[str, Any]:
    table = file.table
    record_set: dict[str, Any] = {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.meaning,
    }
    unique = {
        "campaigns": KEY,
        "rounds": (*KEY, "round"),
        "declarations": (*KEY, "identifier"),
        "failures": KEY,
        "attempts": (*KEY, "round", "attempt"),
    }
    if table.name in unique:
        record_set["key"] = [{"@id": f"{table.name}/{name}"} for name in unique[table.name]]
    record_set["field"] = [_field(file, column) for column in table.columns]
    return record_set


def _field(file: ExportedFile, column: Column) -> dict[str, Any]:
    is_csv = file.path.suffix == ".csv"
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{file.table.name}/{column.name}",
        "name": column.name,
        "description": column.meaning + (_IN_CSV.get(column.kind, "") if is_csv else ""),
        "dataType": _DATA_TYPES.get(column.kind, "sc:Text"),
        "source": {
            "fileObject": {"@id": file.path.name},
            "extract": {"column": column.name},
        },
    }
    if column.kind in _SHAPES and not is_csv:
        field |= {"isArray": True, "arrayShape": _SHAPES[column.kind]}
    if column.name in _KEY_SETS:
        target = f"{_KEY_SETS[column.name]}/{column.name}"
        field["references"] = {"field": {"@id": target}}
    return field
