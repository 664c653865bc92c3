"""Studies on paper: tables beside the published figures, charts, a folder a study, and its check.

Renders what `cads_env.studies` computes; decides nothing about a figure.
"""

from cads_env.report.studies.check import Problem, check_folder
from cads_env.report.studies.folder import StudyFolder, reproduce_into, write_summary
from cads_env.report.studies.terminal import study_tables, verdict_line

__all__ = [
    "Problem",
    "StudyFolder",
    "check_folder",
    "reproduce_into",
    "study_tables",
    "verdict_line",
    "write_summary",
]
