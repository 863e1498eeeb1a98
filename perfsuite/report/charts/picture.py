"""A chart as a picture of its own: title and note, panels in columns, and a legend, as one SVG file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from markupsafe import Markup

from perfsuite.records.chart import Chart, HeatMap, StackedBars
from perfsuite.report.charts.panels import CHARACTER, Area, Drawing, heat_map, stacked_bars, xy_chart
from perfsuite.report.charts.svg import cut_middle, shapes
from perfsuite.report.visible import without_controls

#: Pixels: the whole picture, its edge, and around an area: left for numbers, right for half of one.
WIDTH, EDGE = 1000, 12
_LEFT, _RIGHT = 56, 24
#: Above an area for the name of its y, and below it for numbers and the name of its x.
_ABOVE, _BELOW = 28, 46
#: All rows of areas together, and one at the least and at the most.
_ROWS, _LEAST_ROW, _MOST_ROW = 760, 150, 400
#: Lines of the title and of all else, and how much wider than others the letters of a title are.
_TITLE_LINE, LINE, _TITLE_SIZE = 20, 16, 1.4
#: A sign of the legend, that with the space behind it, and what is between two entries.
_SIGN, _BEFORE_TEXT, _BETWEEN = 28, 34, 22
#: Characters of a name in the legend.
_MOST_CHARACTERS = int((WIDTH - 2 * EDGE - _BEFORE_TEXT) / CHARACTER)

#: Colours as on the page, on white.
_STYLE = """
svg{overflow:visible;font-family:sans-serif}text{font-size:10.5px;fill:#565d66}
.title{font-size:15px;font-weight:600;fill:#1b1e22}.strong{fill:#1b1e22;paint-order:stroke;stroke:#fff;stroke-width:2px}
.middle{text-anchor:middle}.end{text-anchor:end}
.k0{color:#1f83c4}.k1{color:#d55e00}.k2{color:#009e73}.k3{color:#b45f97}.k4{color:#b07c00}.k5{color:#7f7f7f}
.ink,.reference{color:#1b1e22}.grid,.faint{color:#dcdfe3}.faint{color:#8a9199}.base{color:#565d66}
.d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 2}.d3{stroke-dasharray:8 3 2 3}.d4{stroke-dasharray:4 2}
.d5{stroke-dasharray:1 3}.reference{stroke-dasharray:6 4}
use,rect{fill:currentColor}line,path[class]{stroke:currentColor}
path[class]{fill:none;stroke-width:1.6;stroke-linejoin:round}path.curve{stroke-width:2}path.faint{stroke-width:1}
path.band{fill:currentColor;fill-opacity:.16;stroke:none}rect.bar{stroke:#fff}
.f1,.f2,.f3{stroke:currentColor;stroke-width:1.4}use.f1{fill:#fff}use.f2,rect.f2{fill-opacity:.4}use.f3{fill:#1b1e22}
.ring{fill:none;stroke:#d55e00;stroke-width:1.6}.box{stroke:#565d66;stroke-width:.8}.fold{stroke-dasharray:4 3}
path.edge{color:#8a9199;stroke-width:1}path.critical,.critical{color:#d55e00;stroke:#d55e00;stroke-width:2.2}
.name{font-weight:600}.small{font-size:9px}
"""


def picture_svg(chart: Chart) -> str:
    """Draw a chart; the same chart gives the same text."""
    n_columns = max(1, min(chart.n_columns, len(chart.panels)))
    column, n_rows = (WIDTH - 2.0 * EDGE) / n_columns, -(-len(chart.panels) // n_columns)
    height = max(_LEAST_ROW, min(_MOST_ROW, _ROWS // max(1, n_rows)))
    areas, signs = _drawing(chart, column - _LEFT - _RIGHT, height)
    head = [*written(chart.title, EDGE, EDGE, WIDTH - 2.0 * EDGE, "title")]
    top = EDGE + float(len(head) * _TITLE_LINE)
    note = [*written(chart.note, EDGE, top, WIDTH - 2.0 * EDGE)]
    panels, top = _panels(areas, column, n_columns, top + (len(note) + 0.5) * LINE)
    legend, bottom = _legend(signs, top + LINE / 2.0)
    return document([*head, *note, *panels, *legend], WIDTH, bottom + EDGE)


def _panels(areas: Sequence[Area], column: float, n_columns: int, top: float) -> tuple[list[Markup], float]:
    """Set panels row by row, all titles with as many lines as the longest; return where they end, too."""
    titles = [[*written(area.title, _LEFT, 0.0, column - _LEFT, "strong")] for area in areas]
    above = LINE * max(map(len, titles), default=0) + 4.0 + _ABOVE
    parts = []
    for place, (area, title) in enumerate(zip(areas, titles, strict=True)):
        drawn = Markup("").join([*title, *_framed(area, column - _LEFT - _RIGHT, above)])
        left = EDGE + place % n_columns * column
        parts.append(Markup('<svg x="{:g}" y="{:g}">{}</svg>').format(left, top, drawn))
        if place % n_columns == n_columns - 1 or area is areas[-1]:
            top += above + area.canvas.height + _BELOW
    return parts, top


def _drawing(chart: Chart, width: float, height: int) -> Drawing:
    if isinstance(chart, HeatMap):
        return heat_map(chart, width, height)
    return stacked_bars(chart, height) if isinstance(chart, StackedBars) else xy_chart(chart, width, height)


def _framed(area: Area, width: float, top: float) -> Iterator[Markup]:
    """Yield an area with the names of its axes: of y above it, of x below its right end."""
    drawn = Markup("").join(area.canvas.area(area.marks, area.x_labels))
    yield Markup('<svg x="{}" y="{:g}" width="{:g}" height="{}">{}</svg>').format(
        _LEFT, top, width, area.canvas.height, drawn
    )
    bottom = top + area.canvas.height + _BELOW - 14.0
    for x, y, look, text in (
        (0.0, top - 18.0, "start", area.canvas.y.title),
        (_LEFT + width, bottom, "end", area.canvas.x.title),
    ):
        yield Markup('<text class="{}" x="{:g}" y="{:g}">{}</text>').format(look, x, y, text)


def _legend(signs: Mapping[str, Markup], top: float) -> tuple[list[Markup], float]:
    """Explain the signs, line by line; return where that ends, too."""
    parts: list[Markup] = []
    x = float(EDGE)
    entry = '<svg x="{:g}" y="{:g}" width="{}" height="14">{}<text x="{}" y="11">{}</text></svg>'
    for name, sign in signs.items():
        text = cut_middle(name, _MOST_CHARACTERS)
        wide = _BEFORE_TEXT + len(text) * CHARACTER
        if x > EDGE and x + wide > WIDTH - EDGE:
            x, top = float(EDGE), top + LINE + 2.0
        # format escapes what it is given
        parts.append(Markup(entry).format(x, top, _SIGN, sign, _BEFORE_TEXT, text))  # nosec B704
        x += wide + _BETWEEN
    return parts, top + LINE + 2.0


def written(text: str, x: float, top: float, width: float, look: str = "") -> Iterator[Markup]:
    """Yield the lines of a text, as many as it takes within a width; no number is parted from its per cent."""
    size, line = (_TITLE_SIZE, _TITLE_LINE) if look == "title" else (1.0, LINE)
    for place, words in enumerate(wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"), int(width / CHARACTER / size))):
        yield Markup('<text class="{}" x="{:g}" y="{:g}">{}</text>').format(
            look, x, top + (place + 1) * line - 4, words
        )


def document(parts: Iterable[Markup], width: float, height: float) -> str:
    """Return parts of a picture as a file; what XML cannot hold is written out."""
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="{0:g}" height="{1:g}" viewBox="0 0 {0:g} {1:g}">'
    inside = Markup("\n").join([shapes(), Markup('<rect style="fill:#fff" width="100%" height="100%"/>'), *parts])
    text = f"{head.format(width, height)}\n<style>{_STYLE}</style>\n{inside}\n</svg>\n"
    return without_controls(text)
