"""Runs as files for other people's tools: Parquet, CSV and Croissant metadata.

Streams the folder of a run that has ended; computes no score and changes nothing in the folder.
"""

from cads_env.report.export.folder import Export, export_run

__all__ = ["Export", "export_run"]
