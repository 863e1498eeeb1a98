"""Pieces of pictures, as SVG that needs no script.

Places across are per cents of the width and places down are pixels, so that one picture fits a phone, a desk and paper,
and its words keep their size. Words are beside the picture's area, in the room that is left for them.

Colours are classes of the style sheet (``k0`` to ``k5``, or an outcome's), shapes are symbols that the page has once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from perfsuite.report.charts.axes import Axis
from perfsuite.report.visible import visible

#: Shapes around (0, 0), about 8 pixels wide, that differ where colours cannot be told apart.
SHAPES = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M-3.6-3.6h7.2v7.2h-7.2z",
    "up": "M0-4.8L4.4 3.4H-4.4z",
    "diamond": "M0-5.2L5.2 0L0 5.2L-5.2 0z",
    "down": "M0 4.8L4.4-3.4H-4.4z",
    "cross": "M-4.4-3L-3-4.4L0-1.4L3-4.4L4.4-3L1.4 0L4.4 3L3 4.4L0 1.4L-3 4.4L-4.4 3L-1.4 0z",
    "right": "M5 0L-3.4-4.6V4.6z",
    "left": "M-5 0L3.4-4.6V4.6z",
    "ring": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0zM-2.4 0a2.4 2.4 0 1 1 4.8 0a2.4 2.4 0 1 1-4.8 0z",
    "bar": "M-1.2-7h2.4v14h-2.4z",
}
#: For things without a meaning of their own, by turns.
_SHAPES_BY_TURNS = ("circle", "square", "up", "diamond", "down", "cross")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How one kind of mark is drawn: never by colour alone."""

    colour: str
    shape: str


def look_of(place: int) -> Look:
    """Return the look of one of several things without a meaning of their own; from the 37th on they repeat."""
    turns, turn = divmod(place, len(_SHAPES_BY_TURNS))
    return Look(colour=f"k{(turn + turns) % len(_SHAPES_BY_TURNS)}", shape=_SHAPES_BY_TURNS[turn])


def shapes() -> Markup:
    """Return the definitions of the shapes, which a page or a picture holds once."""
    paths = Markup("").join(Markup('<path id="shape-{}" d="{}"/>').format(name, path) for name, path in SHAPES.items())
    return Markup("<defs>{}</defs>").format(paths)


def symbols() -> Markup:
    """Return the shapes for a page."""
    return Markup('<svg class="symbols" width="0" height="0" aria-hidden="true">{}</svg>').format(shapes())


def across(part: float) -> str:
    """Write a part of the width: ``43.2%``."""
    return f"{round(part * 100.0, 2):g}%"


def down(pixels: float) -> str:
    """Write a place in pixels."""
    return f"{round(pixels, 1):g}"


def mark(part: float, y: float, look: Look, tip: str = "") -> Markup:
    """Return a mark at a place, which tells what it is where it is pointed at."""
    title = Markup("<title>{}</title>").format(visible(tip)) if tip else ""
    return Markup('<use href="#shape-{}" class="{}" x="{}" y="{}">{}</use>').format(
        look.shape, look.colour, across(part), down(y), title
    )


def rule(from_x: float, from_y: float, to_x: float, to_y: float, look: str) -> Markup:
    """Return a straight line between parts of the width, at heights in pixels."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
        look, across(from_x), down(from_y), across(to_x), down(to_y)
    )


def block(from_x: float, to_x: float, y: float, height: float, look: str) -> Markup:
    """Return a filled stretch of the width."""
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        look, across(from_x), down(y), across(max(0.0, to_x - from_x)), down(height)
    )


def words(part: float, y: float, text: str, look: str = "") -> Markup:
    """Return words at a place; ``start``, ``middle`` and ``end`` say on which side of it, ``strong`` how bold."""
    return Markup('<text{} x="{}" y="{}">{}</text>').format(
        Markup(' class="{}"').format(look) if look else "", across(part), down(y), visible(text)
    )


def picture(marks: Iterable[Markup], height: int, summary: str, look: str = "") -> Markup:
    """Return a picture, with its name for those who do not see it; without a name it is hidden from them."""
    named = Markup('role="img" aria-label="{}"').format(visible(summary)) if summary else Markup('aria-hidden="true"')
    return Markup('<svg class="{}" width="100%" height="{}" {}>{}</svg>').format(
        look or "area", height, named, Markup("").join(marks)
    )


def cut_middle(text: str, most: int) -> str:
    """Cut a text to so many characters in its middle, where there is the least to lose."""
    n_first = most // 2
    n_last = most - 1 - n_first
    return text if len(text) <= most else f"{text[:n_first]}…{text[len(text) - n_last :]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """The area between two axes."""

    x: Axis
    y: Axis
    height: int

    def down(self, value: float) -> float:
        """Return how many pixels below the top a value lies."""
        return self.height * (1.0 - self.y.part(value))

    def mark(self, x: float, y: float, look: Look, tip: str = "") -> Markup:
        """Return a mark at two values."""
        return mark(self.x.part(x), self.down(y), look, tip)

    def curves(self, curves: Iterable[tuple[str, Sequence[tuple[float, float]]]]) -> Markup:
        """Return lines through points, each with its look; they stretch with the width, and their strokes do not.

        A look with the word ``dots`` draws the points alone, as strokes without a length; so is a line of one point.
        """
        looks = ((f"{look} dots" if len(points) == 1 else look, points) for look, points in curves if points)
        paths = Markup("").join(
            Markup('<path class="{}" d="{}"/>').format(look, self._path(points, "dots" in look.split()))
            for look, points in looks
        )
        return Markup('<svg class="curves" viewBox="0 0 1000 1000" preserveAspectRatio="none">{}</svg>').format(paths)

    def _path(self, points: Sequence[tuple[float, float]], are_dots: bool) -> str:
        places = (f"{self.x.part(x) * 1000:.0f} {(1.0 - self.y.part(y)) * 1000:.0f}" for x, y in points)
        return "".join(f"M{place}h0" for place in places) if are_dots else f"M{'L'.join(places)}"

    def plot(
        self, marks: Iterable[Markup], summary: str, x_labels: Sequence[tuple[float, str]] | None = None
    ) -> Markup:
        """Return the picture with its axes; names of places across may stand instead of numbers."""
        drawn = picture(self.area(marks, x_labels), self.height, summary)
        return Markup('<div class="plot"><p class="up">{}</p>{}<p class="along">{}</p></div>').format(
            self.y.title, drawn, self.x.title
        )

    def area(self, marks: Iterable[Markup], x_labels: Sequence[tuple[float, str]] | None = None) -> Iterator[Markup]:
        """Yield divisions with their numbers, then the marks."""
        yield from self._grid([(tick, self.x.label(tick)) for tick in self.x.ticks] if x_labels is None else x_labels)
        yield from marks

    def _grid(self, x_labels: Sequence[tuple[float, str]]) -> Iterator[Markup]:
        for tick in self.y.ticks:
            yield rule(0.0, self.down(tick), 1.0, self.down(tick), "grid")
            yield Markup('<text class="end" x="-6" y="{}">{}</text>').format(
                down(self.down(tick) + 4), self.y.label(tick)
            )
        yield rule(0.0, self.height, 1.0, self.height, "base")
        for place, label in x_labels:
            yield words(self.x.part(place), self.height + 15, label, "middle")


def legend(looks: Iterable[tuple[str, Look]]) -> Markup:
    """Say which look is of what."""
    entries = Markup("").join(
        Markup('<li><svg width="14" height="14" aria-hidden="true">{}</svg> <bdi>{}</bdi></li>').format(
            Markup('<use href="#shape-{}" class="{}" x="7" y="7"/>').format(look.shape, look.colour), visible(name)
        )
        for name, look in looks
    )
    return Markup('<ul class="legend">{}</ul>').format(entries)


#: Red, green and blue at equal steps, the lightest first. *Source*: cividis, by Nuñez, Anderton and Renslow, Optimizing
#: colormaps with consideration for color vision deficiency, PLOS ONE 13 (7), 2018.
_SHADES = ((254, 232, 56), (188, 175, 111), (124, 123, 120), (67, 78, 108), (0, 34, 78))
#: Parts of red, green and blue in the lightness of a colour.
_LUMINANCE_SHARES = (0.2126, 0.7152, 0.0722)


def shade(part: float) -> str:
    """Return the colour of a part of a scale, from 0 to 1, as #rrggbb."""
    place = min(1.0, max(0.0, part)) * (len(_SHADES) - 1)
    before = min(int(place), len(_SHADES) - 2)
    ends = zip(_SHADES[before], _SHADES[before + 1], strict=True)
    return "#" + "".join(f"{round(low + (high - low) * (place - before)):02x}" for low, high in ends)


def ink_on(colour: str) -> str:
    """Return black or white, whichever stands out more from a colour. *Source*: WCAG 2.1, contrast ratio."""
    return "#000000" if (luminance(colour) + 0.05) / 0.05 > 1.05 / (luminance(colour) + 0.05) else "#ffffff"


def luminance(colour: str) -> float:
    """Return the relative luminance of an sRGB colour. *Source*: WCAG 2.1; IEC 61966-2-1."""
    parts = (int(colour[place : place + 2], 16) / 255.0 for place in (1, 3, 5))
    return sum(share * _linear(part) for share, part in zip(_LUMINANCE_SHARES, parts, strict=True))


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def log_part(value: float, values: Sequence[float]) -> float:
    """Return where a positive value lies between the least and the largest of some, by their logarithms."""
    least, most = min(values), max(values)
    return math.log(value / least) / math.log(most / least) if least < most else 0.5


def significant(value: float, n_digits: int) -> str:
    """Write a positive number with so many digits or, where the whole part has more, with that."""
    return f"{value:.{max(0, n_digits - 1 - math.floor(math.log10(value)))}f}"
