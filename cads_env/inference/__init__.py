"""Intervals, tests and evidence for paired differences and for counts.

Pure functions of plain numbers, one a campaign, on NumPy and SciPy. Knows nothing of screens or
agents, and reads no file. Primary: `clustered` over a panel, `paired_t` over the seeds of one
registry, `clopper_pearson_upper` for counts; the bootstraps are a second opinion.
"""

from cads_env.inference.binomial import (
    ProportionInterval,
    clopper_pearson,
    clopper_pearson_upper,
)
from cads_env.inference.clusters import clustered
from cads_env.inference.equivalence import Equivalence, tost
from cads_env.inference.estimate import DETECTABLE_FACTOR, Estimate, paired_t
from cads_env.inference.family import CANNOT_TELL, Contrast, compare_family, contrast, holm
from cads_env.inference.monte_carlo import MonteCarloBar, monte_carlo_bar
from cads_env.inference.power import (
    detectable_difference,
    n_to_detect,
    n_to_exclude_zero,
    t_detectable,
    t_power,
)
from cads_env.inference.resampling import (
    BootstrapInterval,
    bootstrap,
    bootstrap_generator,
    hierarchical_bootstrap,
)
from cads_env.inference.twin_evidence import TwinPath, beats_twin, beats_twin_path

__all__ = [
    "CANNOT_TELL",
    "DETECTABLE_FACTOR",
    "BootstrapInterval",
    "Contrast",
    "Equivalence",
    "Estimate",
    "MonteCarloBar",
    "ProportionInterval",
    "TwinPath",
    "beats_twin",
    "beats_twin_path",
    "bootstrap",
    "bootstrap_generator",
    "clopper_pearson",
    "clopper_pearson_upper",
    "clustered",
    "compare_family",
    "contrast",
    "detectable_difference",
    "hierarchical_bootstrap",
    "holm",
    "monte_carlo_bar",
    "n_to_detect",
    "n_to_exclude_zero",
    "paired_t",
    "t_detectable",
    "t_power",
    "tost",
]
