"""Colours and shapes of what figures show: one thing looks alike in all figures, and is never told by colour alone.

Colours lie in the middle of the lightness, so that each stands out from a white page and from a dark one. *Source*:
after Okabe and Ito, Color Universal Design, 2008, darker or lighter where theirs is faint on one of the two; WCAG 2.1,
1.4.11, a contrast of 3 to 1 for graphical objects.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.records.outcome import Outcome

BLUE = "#1F83C4"
VERMILLION = "#D55E00"
GREEN = "#009E73"
GOLD = "#B07C00"
PURPLE = "#B45F97"
GREY = "#7F7F7F"

#: For lines and groups without a meaning of their own, with their shapes and dashes.
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, GOLD, GREY)
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 2), (1, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How one kind of mark is drawn."""

    colour: str
    #: As Vega calls it, or a path in a square from -1 to 1.
    shape: str


#: A bar across a row, taller than other marks, so that both can be seen where it lies upon one.
BAR_SHAPE = "M-0.22,-1.5H0.22V1.5H-0.22Z"
#: A diamond of which the corners stand out where a circle lies upon it.
DIAMOND_SHAPE = "M0,-1.35L1.35,0L0,1.35L-1.35,0Z"

TIME_LOOKS = {
    "measured": Look(colour=BLUE, shape="circle"),
    "expected": Look(colour=GOLD, shape=DIAMOND_SHAPE),
    "floor": Look(colour=GREY, shape="triangle-right"),
    "baseline": Look(colour=PURPLE, shape=BAR_SHAPE),
    "old side": Look(colour=PURPLE, shape=BAR_SHAPE),
}

OUTCOME_LOOKS = {
    Outcome.INVALID: Look(colour=GREY, shape="cross"),
    Outcome.IMPOSSIBLE: Look(colour=VERMILLION, shape="cross"),
    Outcome.INCOMPARABLE: Look(colour=GREY, shape="square"),
    Outcome.REGRESSED: Look(colour=VERMILLION, shape="triangle-right"),
    Outcome.SLOW: Look(colour=VERMILLION, shape="triangle-up"),
    Outcome.INCONCLUSIVE: Look(colour=GOLD, shape="diamond"),
    Outcome.NEW: Look(colour=PURPLE, shape="square"),
    Outcome.IMPROVED: Look(colour=GREEN, shape="triangle-left"),
    Outcome.PASS: Look(colour=BLUE, shape="circle"),
}


def look_of(place: int) -> Look:
    """Return the look of one of several things without a meaning of their own; from the seventh on they repeat."""
    return Look(colour=COLOURS[place % len(COLOURS)], shape=SHAPES[place % len(SHAPES)])
