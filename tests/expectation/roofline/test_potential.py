"""Relative Inference Potential: distances worked out by hand, and what must hold for any roof."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.potential import InferencePotential, inference_potential, nearest
from perfsuite.expectation.roofline.roof import Regime, Roof

#: Ridge at 20 FLOPs a byte.
ROOF = Roof(peak_flops_per_s=400e9, bandwidth_bytes_per_s=20e9)

_RATES = st.floats(min_value=1e-3, max_value=1e15)
_ROOFS = st.builds(Roof, peak_flops_per_s=_RATES, bandwidth_bytes_per_s=_RATES)
_SHARES = st.floats(min_value=1e-6, max_value=1.0)


def below(share_of_ridge: float, share_of_peak: float, roof: Roof = ROOF) -> InferencePotential:
    """Return the potential of a point at shares of the ridge and of the peak."""
    return inference_potential(share_of_ridge * roof.ridge_point, share_of_peak * roof.peak_flops_per_s, roof)


def test_the_ridge_itself_has_none_left() -> None:
    """At the ridge, at the peak, the distance is 0 in both forms."""
    found = inference_potential(20.0, 400e9, ROOF)
    assert (found.regime, found.decades, found.literal) == (Regime.COMPUTE, 0.0, 0.0)


@pytest.mark.parametrize(
    ("intensity", "flops_per_s", "regime", "decades", "literal"),
    [
        # A tenth of the ridge and a tenth of the peak: one decade left and one below.
        (2.0, 40e9, Regime.MEMORY, math.sqrt(2), math.hypot(18.0, 360e9)),
        # A decade to the left, three below: sqrt(1 + 9).
        (2.0, 0.4e9, Regime.MEMORY, math.sqrt(10), math.hypot(18.0, 399.6e9)),
        # Above the ridge only what is below the peak counts, however far to the right.
        (200.0, 4e9, Regime.COMPUTE, 2.0, 396e9),
        (2e9, 4e9, Regime.COMPUTE, 2.0, 396e9),
        (20.0, 40e9, Regime.COMPUTE, 1.0, 360e9),
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


def test_the_literal_form_sees_no_intensity() -> None:
    """On raw axes FLOPs a byte vanish beside FLOP/s: points a hundredfold apart in intensity are alike to it."""
    near, far = inference_potential(19.0, 1e9, ROOF), inference_potential(0.19, 1e9, ROOF)
    assert near.literal == far.literal
    assert far.decades > near.decades + 0.3


@given(_ROOFS, _SHARES, _SHARES, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_do_not_matter(roof: Roof, left: float, low: float, flops_unit: float, bytes_unit: float) -> None:
    """Counting FLOPs and bytes in other units moves no point: the decades stay what they were."""
    scaled = Roof(
        peak_flops_per_s=roof.peak_flops_per_s * flops_unit,
        bandwidth_bytes_per_s=roof.bandwidth_bytes_per_s * bytes_unit,
    )
    intensity, flops_per_s = left / 2 * roof.ridge_point, low * roof.peak_flops_per_s
    one = inference_potential(intensity, flops_per_s, roof)
    other = inference_potential(intensity * flops_unit / bytes_unit, flops_per_s * flops_unit, scaled)
    assert one.regime is other.regime
    assert other.decades == pytest.approx(one.decades, rel=1e-9, abs=1e-9)


@given(_ROOFS, _SHARES, _SHARES, st.floats(1.01, 100.0))
def test_faster_and_denser_is_nearer(roof: Roof, left: float, low: float, factor: float) -> None:
    """In the memory regime both more FLOP/s and more FLOPs a byte come nearer, as far as the ridge."""
    start = below(left / 200, low / 200, roof)
    assert below(left / 200, low / 200 * factor, roof).decades < start.decades
    assert below(left / 200 * factor, low / 200, roof).decades < start.decades


@given(_ROOFS, st.floats(1.0, 1e6), _SHARES, st.floats(1.01, 100.0))
def test_in_the_compute_regime_only_speed_counts(roof: Roof, right: float, low: float, factor: float) -> None:
    """Above the ridge a factor of speed is its decades, and intensity changes nothing."""
    start = below(right * 1.001, low / 200, roof)
    assert start.decades - below(right * 1.001, low / 200 * factor, roof).decades == pytest.approx(math.log10(factor))
    assert below(right * 10, low / 200, roof).decades == start.decades


@given(_ROOFS, _SHARES)
def test_on_the_roof_the_way_to_the_ridge_is_diagonal(roof: Roof, left: float) -> None:
    """A point that attains all that memory lets is sqrt(2) times its decades of FLOP/s away from the ridge."""
    share = left / 2
    assert below(share, share, roof).decades == pytest.approx(math.sqrt(2) * -math.log10(share), rel=1e-6)


def test_the_nearest_is_found_within_a_regime() -> None:
    """Among points of one regime the place of the least distance is returned, the first of equals."""
    assert nearest([below(0.1, 0.1), below(0.5, 0.4), below(0.01, 0.01), below(0.5, 0.4)]) == 1


def test_regimes_are_not_compared() -> None:
    """A point of each regime cannot be ordered, whichever comes first, and neither can no point."""
    memory, compute = below(0.5, 0.4), below(2.0, 0.4)
    told = "points of compute and memory cannot be compared; compare points of one regime only"
    for one, other in ((memory, compute), (compute, memory)):
        with pytest.raises(PerfsuiteError, match=told):
            nearest([one, other])
    with pytest.raises(PerfsuiteError, match="points of no point cannot be compared"):
        nearest([])
