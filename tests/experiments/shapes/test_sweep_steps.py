"""Jumps against the multiples of a tile."""

from __future__ import annotations

import pytest

from perfsuite.experiments.shapes.sweep_record import Jump
from perfsuite.experiments.shapes.sweep_steps import compare_steps, period_of, rank_correlation

SIZES = range(1, 513)
QUIET = [0.001] * 512


def jump(size: int, height_ns: float = 1000.0, step: int = 1) -> Jump:
    """A jump behind a size."""
    return Jump(size=size, next_size=size + step, height_ns=height_ns, height_ratio=0.1)


def test_each_multiple_is_found_or_missed() -> None:
    """What is at no multiple is extra, and a fall is neither."""
    found = compare_steps([jump(64), jump(70), jump(128, -5.0), jump(192)], SIZES, 64, QUIET)
    assert found.found == (64, 192)
    assert found.missed == (128, 256, 320, 384, 448)
    assert found.extra == (70,)
    assert found.hidden == ()


def test_a_multiple_near_an_end_does_not_count() -> None:
    """A step has three sizes at either side of it."""
    assert compare_steps([], range(1, 131), 64, QUIET).missed == (64,)
    assert compare_steps([], range(1, 132), 64, QUIET).missed == (64, 128)
    assert compare_steps([], range(63, 132), 64, QUIET).missed == (128,)


def test_a_jump_between_coarse_sizes_is_at_the_multiple_between_them() -> None:
    """Sizes 61 and 71 have 64 between them."""
    assert compare_steps([jump(61, step=10)], range(1, 512, 10), 64, QUIET).found == (64,)


def test_what_noise_would_hide_is_not_missed() -> None:
    """The higher the size, the smaller a tile's share of it."""
    found = compare_steps([], SIZES, 64, [0.08] * 512)
    assert found.missed == (64, 128, 192)
    assert found.hidden == (256, 320, 384, 448)


@pytest.mark.parametrize("period", [8, 32, 100, 150])
def test_a_period_is_that_of_the_jumps(period: int) -> None:
    """Whatever tile was expected."""
    assert period_of([jump(size) for size in range(period, 510, period)], SIZES) == period


def test_a_period_stands_a_missed_jump_and_small_ones_between() -> None:
    """Jumps count by their heights."""
    jumps = [jump(size) for size in (64, 128, 256, 320, 384, 448)]
    assert period_of([jump(30, 50.0), *jumps, jump(400, 60.0)], SIZES) == 64


def test_a_period_of_wide_sizes_is_found() -> None:
    """A million distances are compared, with a hundred jumps each."""
    sizes = range(1, 1 << 20, 128)
    jumps = [jump(size, step=128) for size in sizes if size // 8192 != (size + 128) // 8192]
    assert period_of(jumps, sizes) == 8192


def test_jumps_anywhere_have_no_period() -> None:
    """Nor have fewer than two, or falls."""
    assert period_of([jump(size) for size in (17, 90, 101, 257, 300, 411)], SIZES) is None
    assert period_of([jump(64)], SIZES) is None
    assert period_of([jump(64, -1.0), jump(128, -1.0)], SIZES) is None


def test_ranks_alone_are_compared() -> None:
    """Spearman's coefficient is 1 for whatever grows with the other."""
    assert rank_correlation([1.0, 2.0, 3.0, 40.0], [1.0, 4.0, 9.0, 10.0]) == pytest.approx(1.0)
    assert rank_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)


def test_what_does_not_vary_has_no_rank() -> None:
    """None, not NaN."""
    assert rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert rank_correlation([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]) is None
    assert rank_correlation([1.0, 2.0], [1.0, 2.0]) is None
