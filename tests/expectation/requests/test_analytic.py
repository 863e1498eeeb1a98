"""LIFE's formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.requests.analytic import Bound, Conventions, forecast_grid, pass_times, rates_of, tpot_s
from perfsuite.records.op_cost import OpCost


def test_data_sheets_units_are_decimal() -> None:
    """50 TOPS are 50e12 operations a second, 256 GB/s are 256e9 bytes a second, 5 microseconds are 5e-6 s."""
    rates = rates_of(tops=50, bandwidth_gb_per_s=256, dispatch_us=5)
    assert (rates.peak_flops_per_s, rates.bandwidth_bytes_per_s) == (50e12, 256e9)
    assert rates.dispatch_s == pytest.approx(5e-6)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("tops", math.nan, r"--tops=nan: expected TOPS above 0"),
        ("bandwidth_gb_per_s", -1.0, r"--bandwidth=-1: expected GB/s above 0"),
        ("compute_efficiency", 1.5, r"--compute-efficiency=1\.5: expected a share above 0 and up to 1"),
    ],
)
def test_what_no_device_gives_is_refused(field: str, value: float, told: str) -> None:
    figures: dict[str, Any] = {"tops": 1.0, "bandwidth_gb_per_s": 1.0, field: value}
    with pytest.raises(PerfsuiteError, match=rf"^{told}$"):
        rates_of(**figures)


GEMM = OpCost(flops=8_000_000, read_bytes=3000, written_bytes=1000, n_dispatches=2)
SOFTMAX = OpCost(flops=1_000_000, read_bytes=5000, written_bytes=1000, n_dispatches=1)
PASS = {"gemm": GEMM, "softmax": SOFTMAX}

positive = st.floats(0.01, 1000.0)


def test_times_are_sums_over_operators() -> None:
    """9e6 operations at half of 1e9 a second, 1e4 bytes at a quarter of 1e6 a second, 3 dispatches of 1 ms."""
    rates = rates_of(
        tops=1e-3, bandwidth_gb_per_s=1e-3, compute_efficiency=0.5, memory_efficiency=0.25, dispatch_us=1000
    )
    times = pass_times(PASS, rates)
    assert float(times.dispatch_s) == pytest.approx(0.003)
    assert float(times.compute_s) == pytest.approx(0.018 + 0.003)
    assert float(times.memory_s) == pytest.approx(0.040 + 0.003)
    assert float(times.longer_s) == pytest.approx(0.043)
    assert times.bound is Bound.MEMORY


def test_grids_reach_over_efficiencies_too() -> None:
    """Both efficiencies may be axes, and the first token waits twice as long at half of both."""
    shares_of_peak = np.array([0.25, 0.5, 1.0])
    grid = forecast_grid(
        GEMM,
        peak_flops_per_s=30e12,
        bandwidth_bytes_per_s=50e9,
        compute_efficiency_ratio=shares_of_peak[:, None],
        memory_efficiency_ratio=shares_of_peak,
    )
    assert grid.longer_s.shape == (3, 3)
    assert np.diag(grid.longer_s) == pytest.approx(grid.longer_s[2, 2] / shares_of_peak)


@given(st.integers(0, 10**14), st.integers(1, 10**11), st.integers(0, 10**4), positive, positive, st.floats(1.0, 100.0))
def test_a_faster_device_is_never_slower(
    flops: int, n_bytes: int, n_dispatches: int, tops: float, bandwidth: float, faster: float
) -> None:
    """More TOPS or more bandwidth never lengthens a pass, which takes at least as long as either part."""
    cost = {"gemm": OpCost(flops=flops, read_bytes=n_bytes, n_dispatches=n_dispatches)}
    base = pass_times(cost, rates_of(tops=tops, bandwidth_gb_per_s=bandwidth, dispatch_us=1))
    assert base.longer_s >= base.compute_s
    assert base.longer_s >= base.memory_s
    for more_tops, more_bandwidth in ((faster, 1.0), (1.0, faster)):
        rates = rates_of(tops=tops * more_tops, bandwidth_gb_per_s=bandwidth * more_bandwidth, dispatch_us=1)
        better = pass_times(cost, rates)
        assert better.longer_s <= base.longer_s
        assert tpot_s(better, Conventions.PAPER) <= tpot_s(base, Conventions.PAPER)
