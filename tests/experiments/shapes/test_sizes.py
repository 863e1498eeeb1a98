"""Moving integers down to sizes of interest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.experiments.shapes.bounds import SizeRange
from perfsuite.experiments.shapes.sizes import (
    Snap,
    architecture_sizes,
    beside_multiple,
    fewer_steps,
    snapped,
    snapped_within,
)
from perfsuite.workload.shapes.operation import Operation

_KNOWN = (9, 48, 72)


@pytest.mark.parametrize(
    ("snap", "size"),
    [
        (Snap.NONE, 100),
        (Snap.BELOW, 95),
        (Snap.AT, 96),
        (Snap.ABOVE, 97),
        (Snap.POWER, 64),
        (Snap.PRIME, 97),
        (Snap.ARCHITECTURE, 72),
    ],
)
def test_each_kind_has_its_sizes(snap: Snap, size: int) -> None:
    """The largest of the kind that is not above the integer."""
    assert snapped(100, snap, step=32, known=_KNOWN) == size


@pytest.mark.parametrize("snap", Snap)
def test_an_integer_below_all_of_a_kind_stays(snap: Snap) -> None:
    """There is always a size, and 1 has none below it."""
    assert snapped(1, snap, step=32, known=_KNOWN) == 1


@given(
    limit=st.integers(1, 600),
    snap=st.sampled_from(Snap),
    step=st.sampled_from((8, 16, 32, 64)),
    block=st.sampled_from((1, 32, 256)),
)
def test_a_size_needs_no_move_of_its_own(limit: int, snap: Snap, step: int, block: int) -> None:
    """Moves go down, keep to the range, and the plain integer that equals a size leads to it: shrinking rests on it."""
    whole = SizeRange(least=max(block, 2), most=600).in_blocks(block)
    assert whole is not None
    limit = min(max(limit, whole.least), whole.most)
    size = snapped_within(limit, snap, whole, step=step, block=block, known=_KNOWN)
    assert whole.least <= size <= limit
    assert size % block == 0
    assert snapped_within(size, Snap.NONE, whole, step=step, block=block) == size


def test_steps_are_dropped_and_the_remainder_is_kept() -> None:
    """From 2 upwards, the least size with the remainder of 97 is 33, and with one more step it is 65."""
    assert [fewer_steps(97, 2, n_kept, step=32) for n_kept in (0, 1, 2, 9)] == [33, 65, 97, 97]
    assert fewer_steps(2, 2, 5, step=32) == 2


def test_places_beside_multiples_are_told() -> None:
    """1 is no multiple's neighbour."""
    found = [beside_multiple(size, 32) for size in (1, 31, 32, 33, 34, 64)]
    assert found == [Snap.NONE, Snap.BELOW, Snap.AT, Snap.ABOVE, Snap.NONE, Snap.AT]


def test_sizes_of_architectures_are_those_of_the_catalogue() -> None:
    """Widths and their halves, heads and their sizes; a vocabulary is not halved, and nothing is said of m."""
    widths = architecture_sizes(Operation.GEMM, "n")
    assert {576, 288, 144, 9, 49152, 151936} <= set(widths)
    assert 151936 // 2 not in widths
    assert 49152 not in architecture_sizes(Operation.GEMM, "k")
    assert {64, 96, 128} <= set(architecture_sizes(Operation.BMM, "k"))
    assert {9, 14, 32} <= set(architecture_sizes(Operation.BMM, "b"))
    assert architecture_sizes(Operation.GEMM, "m") == ()
    assert list(widths) == sorted(set(widths))
