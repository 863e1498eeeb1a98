"""No sample is below the floor."""

from __future__ import annotations

import pytest

from perfsuite.expectation.shapes.floor import ShapeCeilings, floor_ns
from perfsuite.experiments.shapes.ceiling import judge_ceiling
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shapes import basis, tiled

CEILING_CASE = tiled("gemm/m64-n64-k64/f32")
CEILINGS = ShapeCeilings(bandwidths=((1 << 16, 1e12),), flops_per_s={"fp32": 1e9}, spread_ratio=0.2)
FLOOR_NS = floor_ns(CEILING_CASE.shape, CEILINGS)


def fast_meters(share: float, *, sigma: float = 0.0) -> SimulatedMeters:
    """Return a device that takes so many times the floor."""
    return SimulatedMeters(time_ns=lambda _: share * FLOOR_NS, sigma=sigma)


def test_a_shape_above_its_floor_passes_with_its_efficiency() -> None:
    """The ratio is the floor over the fastest sample."""
    verdict = judge_ceiling(basis(fast_meters(4.0), ceilings=CEILINGS), CEILING_CASE)
    assert verdict.outcome is Outcome.PASS
    assert verdict.ratio == pytest.approx(0.25, rel=1e-3)
    assert "0.25 of what the ceilings allow" in verdict.reason


def test_the_ceilings_own_spread_is_allowed() -> None:
    """A fifth below the floor passes at a spread of a fifth, more is impossible in every process."""
    assert judge_ceiling(basis(fast_meters(0.81), ceilings=CEILINGS), CEILING_CASE).outcome is Outcome.PASS
    impossible = fast_meters(0.79)
    verdict = judge_ceiling(basis(impossible, ceilings=CEILINGS), CEILING_CASE)
    assert verdict.outcome is Outcome.IMPOSSIBLE
    assert "measured wrongly, or not all computed; in 2 fresh processes" in verdict.reason
    assert impossible.n_fresh == 2


def test_samples_of_other_properties_count() -> None:
    """The fastest sample is that of all that the process measured."""
    device = fast_meters(4.0, sigma=0.1)
    rests = basis(device, ceilings=CEILINGS)
    pairs = rests.screen.pairs(CEILING_CASE, tiled("gemm/m64-n64-k96/f32"), 16)
    verdict = judge_ceiling(rests, CEILING_CASE)
    assert verdict.ratio == pytest.approx(FLOOR_NS / min(pairs.old_ns))
    assert device.n_calls["samples"] == 0


def test_without_ceilings_there_is_no_floor() -> None:
    """The verdict is INVALID and nothing is measured."""
    device = fast_meters(1.0)
    assert judge_ceiling(basis(device), CEILING_CASE).outcome is Outcome.INVALID
    assert not device.n_calls
