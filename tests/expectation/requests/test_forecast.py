"""The forecast of a request on a device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfsuite.expectation.requests.analytic import Bound, Conventions, expanded, rates_of
from perfsuite.expectation.requests.composition import RequestCost
from perfsuite.expectation.requests.forecast import forecast_request, utilisation
from perfsuite.records.op_cost import OpCost, PassCost

PREFILL = PassCost(by_operator={"gemm": OpCost(flops=4_000_000, read_bytes=2000, n_dispatches=10)})
STEPS = [
    PassCost(by_operator={"gemm": OpCost(flops=1000 * factor, read_bytes=1000 * factor, n_dispatches=5)})
    for factor in (1, 3)
]
REQUEST = RequestCost(n_prompt=4, n_gen=4, prefill=PREFILL, decode=expanded(STEPS, np.array([0, 0, 1, 1])))


def test_a_request_by_hand() -> None:
    """1e9 operations and 1e6 bytes a second, 1 ms a dispatch, 10 W."""
    rates = rates_of(tops=1e-3, bandwidth_gb_per_s=1e-3, dispatch_us=1000, power_w=10)
    forecast = forecast_request(REQUEST, rates, Conventions.ENGINE)
    assert forecast.prefill.time_s == pytest.approx(0.004 + 0.010)
    assert forecast.prefill.memory_s == pytest.approx(0.002 + 0.010)
    assert forecast.prefill.bound is Bound.COMPUTE
    assert forecast.prefill.dispatch_share_ratio == pytest.approx(10 / 14)
    assert forecast.first.time_s == pytest.approx(0.001 + 0.005)
    assert forecast.last.time_s == pytest.approx(0.003 + 0.005)
    assert forecast.decode.time_s == pytest.approx(0.007)
    assert forecast.decode.cost.total == OpCost(flops=2000, read_bytes=2000, n_dispatches=5)
    assert forecast.decode.bound is Bound.MEMORY
    assert forecast.end_to_end_s == pytest.approx(0.014 + 4 * 0.007)
    assert forecast.energy_j == pytest.approx(10 * 0.042)


@pytest.mark.parametrize(("conventions", "tpot_s"), [(Conventions.ENGINE, 0.002), (Conventions.PAPER, 2e-6)])
def test_the_paper_never_waits_for_compute_in_decode(conventions: Conventions, tpot_s: float) -> None:
    """With little compute the engine's TPOT is t_c, the paper's stays t_m; both say that compute bounds."""
    forecast = forecast_request(REQUEST, rates_of(tops=1e-6, bandwidth_gb_per_s=1), conventions)
    assert forecast.decode.time_s == pytest.approx(tpot_s)
    assert forecast.energy_j is None  # without a power
    assert forecast.decode.bound is Bound.COMPUTE


@settings(deadline=None)
@given(st.sampled_from(Conventions), st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.floats(0.0, 100.0))
def test_the_figures_agree_with_each_other(
    conventions: Conventions, tops: float, bandwidth: float, dispatch_us: float
) -> None:
    """TPS is 1 / TPOT, TTFT is no shorter than either part, and the mean lies between first and last."""
    rates = rates_of(tops=tops, bandwidth_gb_per_s=bandwidth, dispatch_us=dispatch_us)
    forecast = forecast_request(REQUEST, rates, conventions)
    for step in (forecast.decode, forecast.first, forecast.last):
        assert step.tokens_per_s == pytest.approx(1 / step.time_s)
        assert 0.0 <= step.dispatch_share_ratio <= 1.0
    assert forecast.prefill.time_s == max(forecast.prefill.compute_s, forecast.prefill.memory_s)
    assert forecast.first.time_s <= forecast.decode.time_s <= forecast.last.time_s


def test_utilisation_is_of_what_was_measured() -> None:
    """2e3 bytes in 1 ms of 4e6 a second are half; 4e6 operations in 1 ms of 8e9 a second are half."""
    use = utilisation(PREFILL.total, 0.001, rates_of(tops=8e-3, bandwidth_gb_per_s=4e-3))
    assert (use.mbu, use.mfu) == (pytest.approx(0.5), pytest.approx(0.5))
