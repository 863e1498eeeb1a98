"""A point on the roofline: its axes, its shares of the ceilings, its regime."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.roofline.point import Regime, Roof, inference_potential, place

from ...synthetic_roofline import bound_work, part, survey, work

#: Ridge at 20 FLOPs a byte.
ROOF = Roof(peak_flops_per_s=400e9, bandwidth_bytes_per_s=20e9)


@pytest.mark.parametrize(
    ("intensity", "flops_per_s", "regime", "decades", "literal"),
    [
        # A tenth of the ridge and a tenth of the peak: one decade left and one below.
        (2.0, 40e9, Regime.MEMORY, math.sqrt(2), math.hypot(18.0, 360e9)),
        # A decade to the left, three below: sqrt(1 + 9); on raw axes the intensity is not seen.
        (2.0, 0.4e9, Regime.MEMORY, math.sqrt(10), math.hypot(18.0, 399.6e9)),
        # Above the ridge only what is below the peak counts, however far to the right.
        (200.0, 4e9, Regime.COMPUTE, 2.0, 396e9),
        (2e9, 4e9, Regime.COMPUTE, 2.0, 396e9),
        (20.0, 40e9, Regime.COMPUTE, 1.0, 360e9),
        # At the ridge nothing is left.
        (20.0, 400e9, Regime.COMPUTE, 0.0, 0.0),
    ],
)
def test_distances_by_hand(
    intensity: float, flops_per_s: float, regime: Regime, decades: float, literal: float
) -> None:
    """In the memory regime it is Euclidean in decades, in the compute regime vertical; the literal form on raw axes."""
    found = inference_potential(intensity, flops_per_s, ROOF)
    assert found.regime is regime
    assert found.decades == pytest.approx(decades)
    assert found.literal == pytest.approx(literal)


#: Over memory 20 GB/s, 400 GFLOP/s in floats and 1600 in integers.
CEILINGS = survey().of(2)


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
    assert point.least_intensity == point.most_intensity == 2.0
    assert point.ceiling_ratio == point.attainable_ratio
    assert point.potential == inference_potential(2.0, point.flops_per_s, point.roof)


@given(st.floats(0.01, 1e4), st.floats(1e6, 1e12))
def test_a_ceiling_is_met_by_one_of_its_shares(intensity: float, time_ns: float) -> None:
    """The share of the attainable rate is the larger of the shares of memory and of arithmetic."""
    point = place("case", bound_work(intensity), time_ns, CEILINGS)
    assert point.attainable_ratio == pytest.approx(max(point.mbu_ratio, point.mfu_ratio), rel=1e-9)
    assert (point.regime is Regime.MEMORY) is (point.operational_intensity < 20.0)


def test_the_share_of_what_nothing_can_exceed_takes_the_fewest_experts() -> None:
    """A quarter of the bytes may do, and these may be in the cache, five times as fast: the share is a twentieth."""
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
