"""Published tables and figures as functions of configs: what is played, counted and compared.

A study is a module with a `STUDY`; its sizes, published figures and tolerances stand in
`cads_configs/studies`. Studies give rows, tables and charts as data; how those are drawn and
written is the report's business. Never imports an agent, a report or the command line.
"""

from cads_env.studies.catalogue import find_items, load_study, study_names
from cads_env.studies.config import load_config
from cads_env.studies.play import StudyRows, play_study
from cads_env.studies.study import Cell, Study, Summary
from cads_env.studies.tables import Chart, Entry, Series, Table

__all__ = [
    "Cell",
    "Chart",
    "Entry",
    "Series",
    "Study",
    "StudyRows",
    "Summary",
    "Table",
    "find_items",
    "load_config",
    "load_study",
    "play_study",
    "study_names",
]
