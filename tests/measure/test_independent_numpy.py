"""NumPy's rates, in a process of their own."""

from __future__ import annotations

from perfsuite.expectation.roofline.ceiling import IndependentRate, Resource
from perfsuite.measure.independent_rates import blas_environment
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import IndependentPlan


def test_numpy_is_measured_by_a_worker() -> None:
    plan = IndependentPlan(n_threads=1, working_set_bytes=1 << 20, budget_ms=40)
    payload = run_worker(plan, extra_environment=blas_environment(1))
    rates = [IndependentRate.from_plain(plain) for plain in payload["rates"]]
    assert [(rate.resource, rate.kind, rate.n_threads) for rate in rates] == [
        (Resource.COMPUTE, "fp32", 1),
        (Resource.BANDWIDTH, "copy", 1),
        (Resource.BANDWIDTH, "triad", 1),
    ]
    assert all(1e8 < rate.best_per_s < 1e14 for rate in rates)
    assert payload["contention"]["wall_ns"] > 0
