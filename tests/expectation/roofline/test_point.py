"""A point on the roofline: its axes, its shares of the ceilings, its regime."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.roofline.point import place
from perfsuite.expectation.roofline.potential import inference_potential
from perfsuite.expectation.roofline.roof import Regime

from ...synthetic_roofline import bound_work, part, survey, work

#: Over memory 20 GB/s, 400 GFLOP/s in floats and 1600 in integers.
CEILINGS = survey().of("cpu", 2)


def test_a_point_by_hand() -> None:
    """2 GFLOP over 1 GB in 100 ms: 2 FLOPs a byte, 20 GFLOP/s of attainable 40, half of memory, 1/80 of arithmetic."""
    point = place("case", work(), 100e6, CEILINGS)
    assert point.case == "case"
    assert point.operational_intensity == 2.0
    assert point.flops_per_s == pytest.approx(20e9)
    assert point.attainable_flops_per_s == pytest.approx(40e9)
    assert point.attainable_ratio == pytest.approx(0.5)
    assert point.mbu_ratio == pytest.approx(0.5)
    assert point.mfu_ratio == pytest.approx(1 / 80)
    assert point.regime is Regime.MEMORY
    assert point.roof.ridge_point == pytest.approx(80.0)


@given(st.floats(0.01, 1e4), st.floats(1e6, 1e12))
def test_a_ceiling_is_met_by_one_of_its_shares(intensity: float, time_ns: float) -> None:
    """The share of the attainable rate is the larger of the shares of memory and of arithmetic."""
    point = place("case", bound_work(intensity), time_ns, CEILINGS)
    assert point.attainable_ratio == pytest.approx(max(point.mbu_ratio, point.mfu_ratio), rel=1e-9)
    assert (point.regime is Regime.MEMORY) is (point.operational_intensity < 20.0)


@given(st.floats(0.01, 1e4), st.floats(1.0, 1e6), st.floats(1.01, 100.0))
def test_a_slower_run_has_a_smaller_share(intensity: float, slowness: float, factor: float) -> None:
    """Under the roof a run that takes a factor longer has its shares divided by it, and lies farther from the ridge."""
    work_at = bound_work(intensity)
    fastest_ns = 1e9 * max(work_at.traffic_bytes / 20e9, work_at.flops / 400e9)
    times_ns = (fastest_ns * slowness, fastest_ns * slowness * factor)
    fast, slow = (place("case", work_at, each, CEILINGS) for each in times_ns)
    assert slow.operational_intensity == fast.operational_intensity
    for name in ("attainable_ratio", "ceiling_ratio", "mbu_ratio", "mfu_ratio"):
        assert getattr(fast, name) / getattr(slow, name) == pytest.approx(factor)
    assert slow.potential.decades > fast.potential.decades


def test_without_experts_both_shares_are_one() -> None:
    """Where routing decides nothing, the intensities are alike, and so are the two shares."""
    point = place("case", work(), 100e6, CEILINGS)
    assert point.least_intensity == point.operational_intensity == point.most_intensity == 2.0
    assert point.ceiling_ratio == point.attainable_ratio


def test_the_share_of_what_nothing_can_exceed_takes_the_fewest_experts() -> None:
    """A quarter of the bytes may do, and these may lie in the cache, five times as fast: the share is a twentieth."""
    routed = work(part(least_stored_bytes=250_000_000, most_stored_bytes=2 * 10**9))
    point = place("case", routed, 40e6, CEILINGS)
    assert (point.least_intensity, point.operational_intensity, point.most_intensity) == (1.0, 2.0, 8.0)
    assert point.attainable_ratio == pytest.approx(1.25)
    assert point.ceiling_ratio == pytest.approx(1.25 / 4 / 5)


def test_activations_of_an_operator_are_traffic() -> None:
    """1 GB of memory and 0.1 GB of cache in 51 ms are all that the two bandwidths give."""
    point = place("case", work(counts_activations=True), 51e6, CEILINGS)
    assert point.traffic_bytes == 1_100_000_000
    assert point.mbu_ratio == pytest.approx(1.0)
    assert point.attainable_ratio == pytest.approx(1.0)


def test_the_potential_is_the_points_own() -> None:
    """The distance is that of the point from its own ridge."""
    point = place("case", work(), 100e6, CEILINGS)
    assert point.potential == inference_potential(2.0, point.flops_per_s, point.roof)
