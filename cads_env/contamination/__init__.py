"""Contamination laws: which clean reads are shifted or replaced, and by how much.

Each law also says how likely each read is to be contaminated given the past, so that whether the
certificate's conditional bound holds is a computed number. Never sees a certificate's verdict.
"""

from cads_env.contamination.batch import ContaminationLaw, RatedLaw, ReadBatch
from cads_env.contamination.bound import BoundCheck, Watch
from cads_env.contamination.making import LAWS, law_of, make_law
from cads_env.contamination.own import code_sha256

__all__ = [
    "LAWS",
    "BoundCheck",
    "ContaminationLaw",
    "RatedLaw",
    "ReadBatch",
    "Watch",
    "code_sha256",
    "law_of",
    "make_law",
]
