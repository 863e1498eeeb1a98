"""What properties are judged with."""

from __future__ import annotations

from perfsuite.experiments.shapes.basis import told_difference
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shapes import basis, tiled

SMALL, LARGE = tiled("gemm/m1-n33-k32/f32"), tiled("gemm/m1-n64-k64/f32")


def test_a_difference_is_told_by_the_sizes_of_the_old_shape() -> None:
    """Sizes that are the same are left out."""
    assert told_difference(LARGE, SMALL) == "n64-k64"


def test_a_slowdown_is_new_over_old() -> None:
    """A case that takes twice as long is slower by 100 %, in the screen and in two fresh processes."""
    meters = SimulatedMeters(time_ns=lambda case: 2e6 if case == SMALL else 1e6)
    answer = basis(meters).slowdown(LARGE, SMALL)
    assert answer.is_confirmed
    assert 1.9 < answer.bounds.lower_ratio < answer.bounds.ratio < answer.bounds.upper_ratio < 2.1
    assert not basis(meters).slowdown(SMALL, LARGE).is_confirmed
