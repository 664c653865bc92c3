from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cads_env.certificate import false_alarm_rate, flag_rate, kappa, sensitivity_uniform
from cads_env.errors import CertificateError


def test_detection_rates_agree_with_the_vectors(vectors: dict[str, Any]) -> None:
    for row in vectors["kappa"]:
        place = {"tau": row["tau"], "s": row["s"]}
        assert kappa(row["Delta"], **place) == pytest.approx(row["kappa"], rel=1e-10)
        assert false_alarm_rate(**place) == pytest.approx(row["alpha_R"], rel=1e-10)
    for row in vectors["sensitivity_uniform"]:
        ours = sensitivity_uniform(row["lo"], row["hi"], row["tau"], row["s"])
        assert ours == pytest.approx(row["sensitivity"], rel=1e-10)
    assert flag_rate(vectors["flag_rate"]["eps"]) == pytest.approx(vectors["flag_rate"]["p"])


def test_kappa_is_the_smallest_rate_over_the_declared_class() -> None:
    rates = [sensitivity_uniform(b, b, 1.0, 0.5) for b in np.linspace(2.0, 6.0, 50)]
    assert min(rates) == pytest.approx(kappa(2.0), rel=1e-12)
    assert kappa(2.0) < sensitivity_uniform(2.0, 4.0)
    assert kappa(math.inf) == 1.0


def test_a_short_range_of_displacements_counts_as_one_displacement() -> None:
    assert sensitivity_uniform(2.0, 2.0 + 1e-9) == pytest.approx(kappa(2.0), abs=1e-9)
    assert sensitivity_uniform(2.0, 2.0 + 1e-5) == pytest.approx(kappa(2.0), abs=1e-5)


def test_the_flag_rate_runs_from_false_alarms_to_the_sensitivity() -> None:
    assert flag_rate(0.0) == false_alarm_rate()
    assert flag_rate(1.0) == sensitivity_uniform(2.0, 4.0)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: kappa(-math.inf), "Delta"),
        (lambda: kappa(2.0, tau=math.inf), "tau"),
        (lambda: kappa(2.0, s=0.0), "s is"),
        (lambda: false_alarm_rate(tau=math.nan), "tau"),
        (lambda: sensitivity_uniform(3.0, 2.0), "high is below low"),
        (lambda: sensitivity_uniform(2.0, math.inf), "high"),
        (lambda: flag_rate(1.5), "epsilon"),
        (lambda: flag_rate(True), "epsilon"),
    ],
)
def test_impossible_parameters_are_refused_by_name(call: Any, named: str) -> None:
    with pytest.raises(CertificateError, match=named):
        call()
