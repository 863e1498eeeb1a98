"""Pieces of pictures."""

from __future__ import annotations

import itertools
import re
from importlib import resources

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.report.charts.axes import linear_axis
from perfsuite.report.charts.svg import SHAPES, Canvas, look_of, luminance, picture, symbols

from ..page.svg_pieces import pieces, points

STYLE = resources.files("perfsuite.report.page").joinpath("templates", "style.css").read_text("utf-8")
COLOURS = dict(re.findall(r"^\.(k\d) \{ color: (#[0-9a-f]{6}); \}$", STYLE, re.MULTILINE))

#: The lightest and the darkest grounds that a page may have.
GROUNDS = ("#ffffff", "#f6f7f8", "#1c2024", "#14171a")


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_stands_out_from_every_ground(colour: str, ground: str) -> None:
    """The contrast is at least 3 to 1, as WCAG 2.1 asks of graphical objects."""
    low, high = sorted((luminance(COLOURS[colour]), luminance(ground)))
    assert (high + 0.05) / (low + 0.05) >= 3.0


def test_things_are_told_apart_without_colours() -> None:
    """No two neighbours share a shape; every look has its colour in the style sheet and its shape on the page."""
    looks = [look_of(place) for place in range(20)]
    assert all(one.shape != other.shape for one, other in itertools.pairwise(looks))
    assert len({look.shape for look in looks}) == len(COLOURS) == 6
    assert {look.colour for look in looks} == COLOURS.keys()
    assert {f"shape-{name}" for name in SHAPES} == {each.attributes["id"] for each in pieces(symbols(), "path")}
    assert all(f".{outcome.value}" in STYLE for outcome in Outcome)


def test_a_plot_has_its_marks_where_its_numbers_say() -> None:
    """Curves, marks and the divisions of both axes lie on the same scales."""
    canvas = Canvas(x=linear_axis("day", 0.0, 10.0), y=linear_axis("time (ms)", 0.0, 4.0), height=100)
    curve = canvas.curves([("k0", [(0.0, 0.0), (5.0, 2.0), (10.0, 4.0)])])
    drawn = canvas.plot([curve, canvas.mark(5.0, 2.0, look_of(0), "five")], "A line.")
    assert points(pieces(drawn, "path")[0]) == [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)]
    (lone,) = pieces(canvas.curves([("k0", [(5.0, 2.0)])]), "path")
    assert (lone.look, lone.attributes["d"]) == ("k0 dots", "M500 500h0")
    (dot,) = pieces(drawn, "use")
    assert (dot.attributes["x"], dot.attributes["y"]) == ("50%", "50")
    assert {each.text for each in pieces(drawn, "text")} >= {"2", "4", "10"}
    assert [each.text for each in pieces(drawn, "p")] == ["time (ms)", "day"]
    assert pieces(drawn, "svg")[0].attributes["aria-label"] == "A line."
    assert pieces(picture([], 5, ""), "svg")[0].attributes["aria-hidden"] == "true"
