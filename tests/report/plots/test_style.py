"""The looks of all pictures."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import pytest
from matplotlib.colors import to_rgb

from perfsuite.report.plots.style import (
    COLOURS,
    sheet,
    significant,
)

from .conftest import LINES


def head(title: str) -> list[str]:
    figure, _ = sheet(replace(LINES, title=title))
    return figure.texts[0].get_text().replace("\N{NO-BREAK SPACE}", " ").split("\n")


@pytest.mark.long_but_first
@pytest.mark.parametrize("unit", ["%", "s", "GFLOP/s", "KiB", "GiB/s"])
def test_a_number_stays_with_its_unit(unit: str) -> None:
    for padding in range(80, 120):
        assert not any(line.startswith(unit) for line in head("x" * padding + f" takes 21 {unit} of it"))


Matrix = tuple[tuple[float, float, float], ...]

#: What is left of red, green and blue, in linear light, without one kind of cones.
#: *Source*: Viénot, Brettel and Mollon, 'Digital video colourmaps for checking the legibility of displays by
#: dichromats', 1999.
DICHROMATS: dict[str, Matrix] = {
    "protanope": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    "deuteranope": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
}
#: sRGB in linear light to CIE XYZ, over the white point.
TO_XYZ: Matrix = (
    (0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505),
    (0.2126, 0.7152, 0.0722),
    (0.0193 / 1.089, 0.1192 / 1.089, 0.9505 / 1.089),
)
#: Colours as far apart as this in CIE Lab differ at a glance; what can just be told is 2.3.
AT_A_GLANCE = 15.0


def seen(colour: str, eyes: Matrix) -> tuple[float, float, float]:
    """A colour as a dichromat sees it, in CIE Lab."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    x, y, z = (max(0.0, part) for part in mixed(TO_XYZ, mixed(eyes, linear)))
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def mixed(matrix: Matrix, parts: list[float]) -> list[float]:
    """The product of a matrix and a colour."""
    return [sum(weight * part for weight, part in zip(row, parts, strict=True)) for row in matrix]


@pytest.mark.parametrize("eyes", DICHROMATS)
def test_colours_differ_for_dichromats(eyes: str) -> None:
    """Any two of the palette differ at a glance without the red or the green cones, as a brown and a green do not."""
    for one, other in combinations(COLOURS, 2):
        assert math.dist(seen(one, DICHROMATS[eyes]), seen(other, DICHROMATS[eyes])) > AT_A_GLANCE, (one, other)
    brown, green = (seen(colour, DICHROMATS["deuteranope"]) for colour in ("#8C510A", "#4D6B00"))
    assert math.dist(brown, green) < AT_A_GLANCE


@pytest.mark.parametrize(
    ("value", "digits", "written"),
    [(0.0314, 2, "0.031"), (0.5, 2, "0.50"), (1.04, 2, "1.0"), (22.9, 2, "23"), (3144.4, 3, "3144"), (1.7, 3, "1.70")],
)
def test_numbers_have_so_many_digits(value: float, digits: int, written: str) -> None:
    """Never a power of ten, and whole parts are whole."""
    assert significant(value, digits) == written
