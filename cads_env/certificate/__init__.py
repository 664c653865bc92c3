"""The certificate: what turns the reads of a record into an error-controlled set of discoveries.

Pure functions of arrays on NumPy and SciPy, in the log domain throughout; m is always the size of
the registry. Never imports a registry, an oracle, a channel or a screen.
"""

from cads_env.certificate.audit import AuditBounds, AuditCap
from cads_env.certificate.audited import AuditOutcome
from cads_env.certificate.cap import expected_increment, log_cap_for, solve_cap
from cads_env.certificate.clean_family import (
    CleanFamily,
    implied_expectation,
    solve_cap_for_family,
)
from cads_env.certificate.clean_laws import (
    CleanLaw,
    GammaLaw,
    MixtureLaw,
    NormalLaw,
    SkewNormalLaw,
    StudentLaw,
    clean_law,
    expected_increment_under,
)
from cads_env.certificate.comparators import naive_bh, uncapped_e_bh
from cads_env.certificate.detection import (
    false_alarm_rate,
    flag_rate,
    kappa,
    sensitivity_uniform,
)
from cads_env.certificate.ebh import bh, e_bh
from cads_env.certificate.evidence import log_evidence, log_increment
from cads_env.certificate.flag_bound import audit_bound, audit_bounds
from cads_env.certificate.reach import reach
from cads_env.certificate.spec import Certificate, Declaration
from cads_env.certificate.zhou_liu import (
    zhou_liu_burn_in,
    zhou_liu_e_bh,
    zhou_liu_log_evidence,
    zhou_liu_log_increment,
    zhou_liu_phi,
)

__all__ = [
    "AuditBounds",
    "AuditCap",
    "AuditOutcome",
    "Certificate",
    "CleanFamily",
    "CleanLaw",
    "Declaration",
    "GammaLaw",
    "MixtureLaw",
    "NormalLaw",
    "SkewNormalLaw",
    "StudentLaw",
    "audit_bound",
    "audit_bounds",
    "bh",
    "clean_law",
    "e_bh",
    "expected_increment",
    "expected_increment_under",
    "false_alarm_rate",
    "flag_rate",
    "implied_expectation",
    "kappa",
    "log_cap_for",
    "log_evidence",
    "log_increment",
    "naive_bh",
    "reach",
    "sensitivity_uniform",
    "solve_cap",
    "solve_cap_for_family",
    "uncapped_e_bh",
    "zhou_liu_burn_in",
    "zhou_liu_e_bh",
    "zhou_liu_log_evidence",
    "zhou_liu_log_increment",
    "zhou_liu_phi",
]
