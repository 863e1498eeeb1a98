"""Axes of figures."""

from __future__ import annotations

import pytest

from perfsuite.report.charts.axes import linear_axis, log_axis


@pytest.mark.parametrize(
    "values", [(0.9, 1.1), (1.0, 1.0), (0.003, 0.004), (1.0, 9.0), (0.5, 80.0), (1e-5, 300.0), (1e-9, 1e9)]
)
def test_a_logarithmic_axis_has_a_few_divisions_inside(values: tuple[float, float]) -> None:
    """At least two and no more than a phone has room for, whatever is between its ends."""
    axis = log_axis(values, "time (ms)")
    assert axis.low < values[0] <= values[1] < axis.high
    assert 2 <= len(axis.ticks) <= 7
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks)
    assert list(axis.ticks) == sorted(set(axis.ticks))


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-5.2, 20.6), (16.0, 19.0), (2466.0, 2726.0), (3.0, 3.0)])
def test_a_linear_axis_has_a_few_divisions_inside(ends: tuple[float, float]) -> None:
    """Evenly, also where both ends are alike; counts are divided by whole numbers."""
    axis = linear_axis("level", *ends)
    assert 2 <= len(axis.ticks) <= 7
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks)
    assert linear_axis("steps", 16.0, 19.0, least_step=1.0).ticks == (16.0, 17.0, 18.0, 19.0)
