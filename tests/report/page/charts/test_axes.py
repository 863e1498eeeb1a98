"""Axes of figures."""

from __future__ import annotations

import itertools

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.report.page.charts.axes import (
    COLOURS,
    DASHES,
    OUTCOME_LOOKS,
    SHAPES,
    TIME_LOOKS,
    Look,
    TimeScale,
    level_axis,
    log_axis,
    log_scale,
    log_ticks,
    look_of,
    looks,
    shown,
    zero_axis,
)

#: The lightest and the darkest grounds that a page may have.
GROUNDS = ("#FFFFFF", "#F4F6F8", "#20242B", "#0D1117")


def linear(colour: str) -> list[float]:
    """The parts of red, green and blue in linear light. Source: IEC 61966-2-1."""
    parts = [int(colour[place : place + 2], 16) / 255.0 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour: str) -> float:
    """The relative luminance. Source: WCAG 2.1."""
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_stands_out_from_every_ground(colour: str, ground: str) -> None:
    """The contrast is at least 3 to 1, as WCAG 2.1 asks of graphical objects."""
    low, high = sorted((luminance(colour), luminance(ground)))
    assert (high + 0.05) / (low + 0.05) >= 3.0


def test_no_two_outcomes_look_alike() -> None:
    """Colour and shape together tell each of the nine outcomes apart, and every one that fails is vermillion."""
    assert set(OUTCOME_LOOKS) == set(Outcome)
    assert len({(look.colour, look.shape) for look in OUTCOME_LOOKS.values()}) == len(Outcome)
    failing = {OUTCOME_LOOKS[each].colour for each in Outcome if each.fails}
    assert len(failing) == 1
    assert not failing & {OUTCOME_LOOKS[each].colour for each in Outcome if not each.fails}


def test_no_shape_is_used_twice_beside_another() -> None:
    """Where colours cannot be told apart, shapes can."""
    alike = TIME_LOOKS["baseline"], TIME_LOOKS["old side"]  # what it took before, by one name or the other
    assert alike[0] == alike[1]
    assert len({look.shape for look in TIME_LOOKS.values()}) == len(TIME_LOOKS) - 1
    assert len(set(COLOURS)) == len(set(SHAPES)) == len(set(DASHES)) == len(COLOURS)
    assert all(one != other for one, other in itertools.pairwise(map(look_of, range(20))))


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
    low, high = log_scale(values)["domain"]
    ticks = log_ticks(values)
    assert low < values[0] <= values[1] < high
    assert 2 <= len(ticks) <= 7
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_an_axis_tells_its_divisions_and_ends() -> None:
    """Under its title; from zero there is room for the highest, and one legend tells colour and shape."""
    axis = log_axis([1.0, 100.0], "time (ms)")["axis"]
    assert (axis["title"], axis["values"]) == ("time (ms)", [1.0, 3.0, 10.0, 30.0, 100.0])
    assert zero_axis(100.0, "time")["scale"]["domain"] == [0, 104.0]
    assert "domain" not in level_axis("level", (1.0, 2.0))["scale"]
    both = looks("what", {"a": Look(colour="#111111", shape="circle"), "b": Look(colour="#222222", shape="square")})
    assert both["color"]["scale"]["domain"] == both["shape"]["scale"]["domain"] == ["a", "b"]
    assert both["color"]["legend"] == both["shape"]["legend"]


@pytest.mark.parametrize(
    ("values", "domain"), [((50.0,), [47.5, 52.5]), ((0.0, 0.0), [0.0, 0.5]), ((99.0, 100.0), [94.5, 104.5])]
)
def test_levels_that_are_alike_have_an_axis_around_them(values: tuple[float, ...], domain: list[float]) -> None:
    """It has a length, and does not go below nothing."""
    assert level_axis("level", values)["scale"]["domain"] == domain
