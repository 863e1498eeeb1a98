"""The roof: two lines that meet at the ridge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.roofline.roof import Regime, Roof

RATES = st.floats(min_value=1e-6, max_value=1e18)

#: 400 GFLOP/s over 20 GB/s.
ROOF = Roof(peak_flops_per_s=400e9, bandwidth_bytes_per_s=20e9)


def roofs() -> st.SearchStrategy[Roof]:
    """Any roof."""
    return st.builds(Roof, peak_flops_per_s=RATES, bandwidth_bytes_per_s=RATES)


def test_the_ridge_is_where_the_lines_meet() -> None:
    """400 GFLOP/s over 20 GB/s meet at 20 FLOPs a byte, from where on the roof is flat."""
    assert ROOF.ridge_point == 20.0
    assert ROOF.attainable_flops_per_s(20.0) == 400e9


@pytest.mark.parametrize(
    ("intensity", "expected"),
    [(0.0, 0.0), (0.25, 5e9), (1.0, 20e9), (19.0, 380e9), (20.0, 400e9), (21.0, 400e9), (1e6, 400e9)],
)
def test_below_the_ridge_the_roof_is_bandwidth_and_above_it_peak(intensity: float, expected: float) -> None:
    """The attainable rate is the intensity times 20 GB/s, and never above 400 GFLOP/s."""
    assert ROOF.attainable_flops_per_s(intensity) == expected


@pytest.mark.parametrize(
    ("intensity", "regime"),
    [(19.999, Regime.MEMORY), (20.0, Regime.COMPUTE), (20.001, Regime.COMPUTE), (0.0, Regime.MEMORY)],
)
def test_the_ridge_itself_is_bound_by_arithmetic(intensity: float, regime: Regime) -> None:
    """Below the ridge memory is the limit; from the ridge on it is arithmetic."""
    assert ROOF.regime(intensity) is regime


@given(roofs(), RATES, RATES)
def test_the_roof_never_falls_and_holds_both_ceilings(roof: Roof, one: float, other: float) -> None:
    """More FLOPs a byte never attain less, and no work exceeds the peak or its bytes times the bandwidth."""
    low, high = sorted((one, other))
    assert roof.attainable_flops_per_s(low) <= roof.attainable_flops_per_s(high) <= roof.peak_flops_per_s
    assert roof.attainable_flops_per_s(low) / low <= roof.bandwidth_bytes_per_s * (1 + 1e-12)


@given(roofs(), RATES)
def test_the_regime_says_which_ceiling_is_met(roof: Roof, intensity: float) -> None:
    """In the compute regime the peak is attained, in the memory regime the bandwidth."""
    attained = roof.attainable_flops_per_s(intensity)
    if roof.regime(intensity) is Regime.COMPUTE:
        assert attained == pytest.approx(roof.peak_flops_per_s)
    else:
        assert attained == pytest.approx(intensity * roof.bandwidth_bytes_per_s)
