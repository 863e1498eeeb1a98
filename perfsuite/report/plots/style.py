"""The looks that all pictures share: size, fonts, colours, and how they are written down."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullFormatter, NullLocator

from perfsuite.records.chart import Axis, Chart

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


#: Where each decade of an axis or of the colours has ticks.
TICKS = (1.0, 2.0, 5.0)

#: Characters of all labels of a line, and what the sign before each takes.
_LINE_WIDTH = 125
_SIGN_WIDTH = 10


def add_legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """Explain each label once, below the panels."""
    by_label = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    longest = max(map(len, by_label)) + _SIGN_WIDTH
    n_columns = max(1, min(len(by_label), _LINE_WIDTH // longest))
    figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=n_columns, handlelength=3.2)


def add_colour_bar(figure: Figure, grid: Sequence[Axes], colours: ScalarMappable, axis: Axis) -> None:
    """Explain the colours, which are logarithmic, beside the panels."""
    bar = figure.colorbar(colours, ax=grid, label=axis.caption, shrink=0.8)
    bar.ax.yaxis.set(major_locator=LogLocator(subs=TICKS), minor_locator=NullLocator(), major_formatter=plain_numbers())


#: The most that all rows of panels take together, and what one takes.
_ROWS_INCHES = 7.5
_LEAST_ROW_INCHES = 4.0
_MOST_ROW_INCHES = 5.0
#: Heights of a line of the title and of the note, with the space between lines.
_TITLE_INCHES = 0.215
_NOTE_INCHES = 0.18
_MARGIN_INCHES = 0.08
#: Characters that fit into a line.
_TITLE_WIDTH = 104
_NOTE_WIDTH = 150
#: The space of 6 % and 21 s, of bytes and of rates.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|s|[KMGT]i?B(?:/s)?|[MGT]FLOP/s)(?!\w))")


def sheet(chart: Chart) -> tuple[Figure, list[Axes]]:
    """Lay out a picture: title and note on top, below them axes for each panel, row by row."""
    n_rows = -(-len(chart.panels) // chart.n_columns)
    row_inches = min(max(WIDTH_INCHES / chart.n_columns, _LEAST_ROW_INCHES), _MOST_ROW_INCHES, _ROWS_INCHES / n_rows)
    title, note = _lines(chart.title, _TITLE_WIDTH), _lines(chart.note, _NOTE_WIDTH)
    head_inches = 2 * _MARGIN_INCHES + len(title) * _TITLE_INCHES + len(note) * _NOTE_INCHES
    height_inches = head_inches + n_rows * row_inches
    below_head = ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, 1.0 - head_inches / height_inches))
    figure = Figure(figsize=(WIDTH_INCHES, height_inches), dpi=DOTS_PER_INCH, facecolor="white", layout=below_head)
    _write_head(figure, title, note, height_inches)
    grid = figure.subplots(n_rows, chart.n_columns, squeeze=False).ravel()
    for spare in grid[len(chart.panels) :]:
        spare.remove()
    return figure, list(grid[: len(chart.panels)])


def _lines(text: str, width: int) -> list[str]:
    """Break a text into as few lines as it takes, about alike, but not between a number and its unit."""
    text = _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)
    n_lines = len(_wrapped(text, width))
    return next(lines for narrow in range(1, width + 1) if len(lines := _wrapped(text, narrow)) == n_lines)


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, break_on_hyphens=False)


def _write_head(figure: Figure, title: list[str], note: list[str], height_inches: float) -> None:
    left = _MARGIN_INCHES / WIDTH_INCHES
    top = 1.0 - _MARGIN_INCHES / height_inches
    below = top - len(title) * _TITLE_INCHES / height_inches
    figure.text(left, top, "\n".join(title), va="top", fontsize=10.5, fontweight="bold", linespacing=1.25)
    figure.text(left, below, "\n".join(note), va="top", fontsize=8.5, color="#444444", linespacing=1.25)
