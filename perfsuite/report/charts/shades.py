"""Shades of values: light to dark, evenly, for eyes of any kind, and the ink that can be read on them."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
