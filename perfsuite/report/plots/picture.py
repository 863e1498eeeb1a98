"""A chart as a picture: drawn as its kind is, in a file of one of the known formats."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib import style
from matplotlib.figure import Figure

from perfsuite.errors import PerfsuiteError
from perfsuite.records.chart import Chart, HeatMap, LineChart, RooflineChart, ScatterChart, StackedBars
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.plots.formats import format_of
from perfsuite.report.plots.heat_map import draw_heat_map
from perfsuite.report.plots.lines import draw_lines
from perfsuite.report.plots.roofline import draw_roofline
from perfsuite.report.plots.scatter import draw_scatter
from perfsuite.report.plots.stacked_bars import draw_stacked_bars
from perfsuite.report.plots.style import SETTINGS

#: What a picture's file tells of itself, by format: nothing of the day or the machine.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": "perfsuite"},
    "svg": {"Creator": "perfsuite", "Date": None},
}

_DRAWN_BY: dict[type[Any], Callable[[Any], Figure]] = {
    HeatMap: draw_heat_map,
    LineChart: draw_lines,
    RooflineChart: draw_roofline,
    ScatterChart: draw_scatter,
    StackedBars: draw_stacked_bars,
}


def write_picture(chart: Chart, path: Path) -> None:
    """Draw a chart into a file, in the format of its suffix.

    Raises PerfsuiteError where the suffix is of no known format, or the file cannot be written.
    """
    write_whole_bytes(path, picture_bytes(chart, format_of(path)), PerfsuiteError)


def picture_bytes(chart: Chart, file_format: str) -> bytes:
    """Draw a chart as PNG or SVG; the same chart gives the same SVG."""
    with style.context(["default", SETTINGS]):
        return figure_bytes(draw(chart), file_format)


def figure_bytes(figure: Figure, file_format: str) -> bytes:
    """Return a figure as a file that tells nothing of the day or the machine."""
    out = io.BytesIO()
    figure.savefig(out, format=file_format, metadata=_METADATA[file_format])
    return out.getvalue()


def draw(chart: Chart) -> Figure:
    """Draw a chart as its kind is drawn."""
    return _DRAWN_BY[type(chart)](chart)
