"""Colours that stand out from a white page and from a dark one."""

from __future__ import annotations

import itertools

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.report.page.charts.palette import COLOURS, DASHES, OUTCOME_LOOKS, SHAPES, TIME_LOOKS, look_of

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
