"""Axes of figures."""

from __future__ import annotations

import pytest

from perfsuite.report.page.charts.axes import Axis, TimeScale, level_axis, linear_axis, log_axis, shown


def test_one_unit_serves_all_times_of_a_figure() -> None:
    """That of the largest, to five digits; a figure without times has the smallest."""
    scale = TimeScale.of([900.0, 2_500_000.0])
    assert (scale.title(), scale(2_500_000.0), scale(900.0)) == ("time (ms)", 2.5, 0.0009)
    assert TimeScale.of([]).unit == "ns"
    assert shown(1234567.891) == 1234600.0


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


def test_a_value_lies_between_the_ends() -> None:
    linear = Axis(title="", low=-10.0, high=10.0, ticks=())
    assert [linear.part(each) for each in (-10.0, 0.0, 5.0, 90.0)] == [0.0, 0.5, 0.75, 1.0]
    logarithmic = Axis(title="", low=0.1, high=10.0, ticks=(), is_log=True)
    assert [round(logarithmic.part(each), 9) for each in (0.01, 0.1, 1.0, 10.0)] == [0.0, 0.0, 0.5, 1.0]


def test_numbers_are_plain_and_changes_have_signs() -> None:
    assert [log_axis([1.0, 100.0], "").label(each) for each in (0.001, 10.0, 1000.0)] == ["0.001", "10", "1,000"]
    signed = linear_axis("", -10.0, 10.0, is_signed=True)
    assert [signed.label(each) for each in (-5.0, 0.0, 5.0)] == ["-5", "0", "+5"]


@pytest.mark.parametrize(("values", "ends"), [((50.0,), (47.5, 52.5)), ((0.0, 0.0), (0.0, 0.5))])
def test_levels_that_are_alike_have_an_axis_around_them(values: tuple[float, ...], ends: tuple[float, float]) -> None:
    axis = level_axis("level", values)
    assert (axis.low, axis.high) == ends
