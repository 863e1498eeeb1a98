"""The looks that all pictures share: size, fonts, colours, and how they are written down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MultipleLocator, NullFormatter

from perfsuite.records.chart import Axis

#: A picture is 1200 px wide.
WIDTH_INCHES = 10.0
DOTS_PER_INCH = 120

#: Told apart by people of any colour vision. *Source*: Okabe and Ito, Color Universal Design, 2008; yellow, faint on
#: white, comes last.
COLOURS = ("#000000", "#E69F00", "#0072B2", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")
#: The same for areas, of which black is the last resort.
BAR_COLOURS = ("#0072B2", "#56B4E9", "#CC79A7", "#E69F00", "#D55E00", "#009E73", "#F0E442", "#000000")
#: What lines are told apart by beside their colours.
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
REFERENCE_COLOUR = "#D55E00"

#: Parts of red, green and blue in the lightness of a colour.
_LUMINANCE_SHARES = (0.2126, 0.7152, 0.0722)

#: On top of matplotlib's defaults, whatever the user has set: SVG with text as text and the same names in every run.
SETTINGS = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "perfsuite",
}


def numbered(labels: Iterable[str]) -> dict[str, int]:
    """Number the labels of a picture in order of first use, so that one label looks alike in all panels."""
    return {label: place for place, label in enumerate(dict.fromkeys(labels))}


def scale_axes(axes: Axes, x_axis: Axis, y_axis: Axis) -> None:
    """Name both axes, divide them, and end them where they say."""
    axes.set(xlabel=x_axis.caption, ylabel=y_axis.caption)
    if x_axis.scale.value is not None:
        axes.set_xscale("log", base=x_axis.scale.value)
        axes.xaxis.set(major_formatter=plain_numbers(), minor_formatter=NullFormatter())
    if y_axis.scale.value is not None:
        axes.set_yscale("log", base=y_axis.scale.value)
        axes.yaxis.set(major_formatter=plain_numbers(), minor_formatter=NullFormatter())
    for axis, drawn in ((x_axis, axes.xaxis), (y_axis, axes.yaxis)):
        if axis.tick_step is not None:
            drawn.set_major_locator(MultipleLocator(axis.tick_step))
    axes.set_xlim(x_axis.least, x_axis.most, auto=None)
    axes.set_ylim(y_axis.least, y_axis.most, auto=None)


def plain_numbers() -> FuncFormatter:
    """Make what writes the ticks of a logarithmic axis as 64 and 0.1, not as powers."""
    return FuncFormatter(lambda value, _: f"{value:g}")


def significant(value: float, digits: int) -> str:
    """Write a positive number with so many digits or, where the whole part has more, with that."""
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(value)))}f}"


def ink_on(colour: Sequence[float]) -> str:
    """Return black or white, whichever stands out more from an sRGB colour. *Source*: WCAG 2.1, contrast ratio."""
    luminance = sum(share * _linear(part) for share, part in zip(_LUMINANCE_SHARES, colour[:3], strict=True))
    return "black" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "white"


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
