"""Lines through points, some of which lie anywhere."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.trace.robust_line import robust_line

_LEVEL = st.integers(0, 10**9)
_SLOPE = st.integers(-(10**5), 10**5)


@given(_LEVEL, _SLOPE, st.lists(st.integers(1, 9), min_size=1, max_size=60))
def test_a_noiseless_line_is_found(level_ns: int, slope_ns: int, gaps: list[int]) -> None:
    """Points on a line, at any steps, give that line."""
    steps = [sum(gaps[:at]) for at in range(len(gaps))]
    line = robust_line(steps, [level_ns + slope_ns * step for step in steps])
    expected = slope_ns if len(steps) > 1 else 0
    assert line.slope_ns == expected
    assert line.at(steps[-1] + 64) == pytest.approx(level_ns + slope_ns * steps[-1] + expected * 64)
    assert line.deviation_ns == 0


def test_a_single_point_is_a_level() -> None:
    """One point has no slope; one of many times its error loses almost nothing."""
    line = robust_line([7], [100])
    assert (line.slope_ns, line.slope_error_ns, line.at(1000)) == (0, 0, 100)
    order = random.Random(4)
    line = robust_line(range(128), [round(10**7 + 10**4 * step + order.gauss(0, 10**4)) for step in range(128)])
    assert (line.slope_ns, line.deviation_ns) == (pytest.approx(10**4, rel=0.02), pytest.approx(10**4, rel=0.6))


@given(_LEVEL, _SLOPE, st.sets(st.integers(0, 31), max_size=6), st.integers(-(10**15), 10**15))
def test_some_points_may_lie_anywhere(level_ns: int, slope_ns: int, wild: set[int], by_ns: int) -> None:
    """Fewer than a fifth of the points change the line by nothing, however far off they are."""
    steps = range(32)
    times_ns = [level_ns + slope_ns * step + (by_ns if step in wild else 0) for step in steps]
    line = robust_line(steps, times_ns)
    assert (line.slope_ns, line.level_ns) == (slope_ns, level_ns + slope_ns * 31)


def test_chance_gives_a_level_no_slope() -> None:
    """On a noisy level the slope is shrunk to 0 in most draws, and the least squares' size in none."""
    order = random.Random(3)
    slopes = [
        robust_line(range(64), [round(order.gauss(10**7, 10**5)) for _ in range(64)]).slope_ns for _ in range(200)
    ]
    assert sum(slope == 0 for slope in slopes) > 180
    assert max(map(abs, slopes)) < 5 * 10**5 / 64


@pytest.mark.parametrize(("steps", "times_ns"), [([], []), ([1, 2], [5])])
def test_what_is_no_series_is_refused(steps: list[int], times_ns: list[int]) -> None:
    """No point, or a time too few, is an error."""
    with pytest.raises(ValueError, match="make no line"):
        robust_line(steps, times_ns)
