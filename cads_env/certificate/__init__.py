"""The certificate: what turns the reads of a record into an error-controlled set of discoveries.

Pure functions of arrays on NumPy and SciPy, in the log domain throughout; m is always the size of
the registry. Never imports a registry, an oracle, a channel or a screen.
"""

from cads_env.certificate.cap import expected_increment, solve_cap
from cads_env.certificate.comparators import naive_bh
from cads_env.certificate.ebh import bh, e_bh
from cads_env.certificate.evidence import log_evidence, log_increment
from cads_env.certificate.reach import reach
from cads_env.certificate.spec import Certificate, Declaration

__all__ = [
    "Certificate",
    "Declaration",
    "bh",
    "e_bh",
    "expected_increment",
    "log_evidence",
    "log_increment",
    "naive_bh",
    "reach",
    "solve_cap",
]
