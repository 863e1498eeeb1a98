"""Draw rooflines: roofs, the region of inference potential below one of them, and points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from perfsuite.records.chart import (
    Numbers,
    PointGroup,
    PotentialRegion,
    RoofLine,
    RooflineChart,
    RooflinePanel,
    RoofRole,
)
from perfsuite.report.plots.labels import Word, write_words
from perfsuite.report.plots.style import (
    COLOURS,
    DASHES,
    MARKERS,
    TICKS,
    add_colour_bar,
    add_legend,
    numbered,
    scale_axes,
    sheet,
)

#: How far before the end of a level line its name may stand, as parts of it.
_BACK = (0.0, 0.3, 0.5, 0.7)


def roofline_words(panel: RooflinePanel, *, names_roofs: bool) -> Iterator[Word]:
    """Yield what is written into a panel, the most needed first; main roofs only where there are several to name."""
    for group in panel.groups:
        for text, x, y in zip(group.texts, group.x, group.y, strict=False):
            if text:
                yield Word(text=text, anchors=((x, y),))
    for ridge in filter(lambda each: each.label, panel.ridges):
        yield Word(text=ridge.label, anchors=((ridge.x, ridge.y),))
    for roof in panel.roofs:
        if names_roofs or roof.role is RoofRole.SIDE:
            yield Word(text=roof.label, anchors=_ends(roof.x, roof.y), is_faint=roof.role is RoofRole.SIDE)
    for contour in panel.region.contours if panel.region else ():
        yield Word(text=contour.label, anchors=_ends(contour.x, contour.y), is_faint=True)


def _ends(x: Numbers, y: Numbers) -> tuple[tuple[float, float], ...]:
    """Return where a line can be named: at its end or, where that is level, before it as well."""
    if y[-1] != y[-2]:
        return ((x[-1], y[-1]),)
    return tuple((x[-1] * (x[-2] / x[-1]) ** part, y[-1]) for part in _BACK)


def marks(panel: RooflinePanel) -> Iterator[tuple[float, float]]:
    """Yield the points and corners that words keep clear of."""
    for group in panel.groups:
        yield from zip(group.x, group.y, strict=True)
    for ridge in panel.ridges:
        yield ridge.x, ridge.y


def strokes(panel: RooflinePanel) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the lines that words keep clear of."""
    for roof in panel.roofs:
        yield roof.x, roof.y
    for group in panel.groups:
        if group.is_joined:
            yield group.x, group.y
        for y, *ends in zip(group.y, group.least_x or (), group.most_x or (), strict=False):
            yield tuple(ends), (y, y)
    if panel.region is not None:
        yield divider(panel.region)
        yield from ((contour.x, contour.y) for contour in panel.region.contours)


def divider(region: PotentialRegion) -> tuple[Numbers, Numbers]:
    """Return the line between the two parts of the region."""
    compute = region.compute
    return (compute.x[0], compute.x[0]), (compute.low_y[0], compute.high_y[0])


#: With grey for yellow, which is faint on white and on the region.
_COLOURS = (*COLOURS[:-1], "#777777")
#: How a kind fills its mark: whole, not at all, by half.
_FILLS = ("full", "none", "left", "top")
_MARK_SIZE = 7.0
#: Told apart by people of any colour vision, and in grey the larger is the darker.
_SHADES = "cividis_r"
#: The two parts of the region; the right one is the darker in grey as well.
_MEMORY_COLOUR, _COMPUTE_COLOUR = "#EAF3FB", "#EEE0C9"
_SIDE_COLOUR = "#777777"
_CONTOUR_COLOUR = "#999999"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looks:
    labels: dict[str, int]
    kinds: dict[str, int]
    #: None where no group has shades.
    shades: LogNorm | None
    #: Whether the roofs are told apart by colour: where there are several main ones.
    has_many_roofs: bool

    def colour(self, label: str) -> str:
        return _COLOURS[self.labels[label] % len(_COLOURS)]

    def dashes(self, label: str) -> str:
        """Return broken lines only: a whole one is measured."""
        _, *broken = DASHES
        return broken[self.labels[label] % len(broken)]

    def marker(self, label: str) -> str:
        return MARKERS[self.labels[label] % len(MARKERS)]

    def fill(self, kind: str) -> str:
        return _FILLS[self.kinds[kind] % len(_FILLS)]


def draw_roofline(chart: RooflineChart) -> Figure:
    """Draw each panel's roofs and points; a label has one colour and mark, and a kind one filling, in all panels."""
    figure, grid = sheet(chart)
    looks = _looks(chart)
    _explain(grid[0], chart, looks)
    for axes, panel in zip(grid, chart.panels, strict=True):
        _draw_panel(axes, panel, looks)
        scale_axes(axes, chart.x_axis, chart.y_axis)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set(major_locator=LogLocator(subs=TICKS), minor_locator=NullLocator())
    add_legend(figure, grid)
    if looks.shades is not None and chart.shade_axis is not None:
        colours = ScalarMappable(looks.shades, matplotlib.colormaps[_SHADES])
        add_colour_bar(figure, grid, colours, chart.shade_axis)
    figure.draw_without_rendering()
    for axes, panel in zip(grid, chart.panels, strict=True):
        words = roofline_words(panel, names_roofs=looks.has_many_roofs)
        write_words(figure, axes, list(words), list(marks(panel)), list(strokes(panel)))
    return figure


def _looks(chart: RooflineChart) -> _Looks:
    groups = [group for panel in chart.panels for group in panel.groups]
    roofs = list(dict.fromkeys(roof.label for panel in chart.panels for roof in _main(panel.roofs)))
    shades = [shade for group in groups for shade in group.shades or ()]
    has_many_roofs = len(roofs) > 1
    # Black is the colour of a single roof, and then of no points.
    labels = (*roofs, *(group.label for group in groups)) if has_many_roofs else ("", *(each.label for each in groups))
    return _Looks(
        labels=numbered(labels),
        kinds=numbered(group.kind for group in groups),
        shades=_norm(shades) if shades else None,
        has_many_roofs=has_many_roofs,
    )


def _norm(shades: Sequence[float]) -> LogNorm:
    least, most = min(shades), max(shades)
    return LogNorm(least, most) if least < most else LogNorm(least / 2.0, most * 2.0)


def _main(roofs: Sequence[RoofLine]) -> Iterator[RoofLine]:
    return (roof for roof in roofs if roof.role is RoofRole.MAIN)


def _draw_panel(axes: Axes, panel: RooflinePanel, looks: _Looks) -> None:
    if panel.title:
        axes.set_title(panel.title)
    if panel.region is not None:
        _draw_region(axes, panel.region)
    for roof in panel.roofs:
        axes.plot(roof.x, roof.y, **_roof_look(roof, looks))
    for ridge in panel.ridges:
        axes.plot([ridge.x], [ridge.y], marker="d", markersize=5.0, color="black", zorder=3.5)
    for group in panel.groups:
        _draw_group(axes, group, looks)


def _draw_region(axes: Axes, region: PotentialRegion) -> None:
    for area, colour in ((region.memory, _MEMORY_COLOUR), (region.compute, _COMPUTE_COLOUR)):
        axes.fill_between(area.x, area.low_y, area.high_y, color=colour, linewidth=0.0, label=area.label, zorder=0.5)
    axes.plot(*divider(region), color="black", linewidth=0.8, linestyle="--")
    for contour in region.contours:
        axes.plot(contour.x, contour.y, color=_CONTOUR_COLOUR, linewidth=0.8, linestyle=":")


def _roof_look(roof: RoofLine, looks: _Looks) -> dict[str, Any]:
    if roof.role is RoofRole.SIDE:
        return {"color": _SIDE_COLOUR, "linewidth": 1.0, "linestyle": "-" if roof.is_measured else "--", "zorder": 2.0}
    look = {"color": looks.colour(roof.label) if looks.has_many_roofs else "black", "zorder": 2.5}
    if roof.is_measured:
        return look | {"linewidth": 2.4, "linestyle": "-"}
    return look | {"linewidth": 1.5, "linestyle": looks.dashes(roof.label)}


def _draw_group(axes: Axes, group: PointGroup, looks: _Looks) -> None:
    if group.is_joined:
        axes.plot(group.x, group.y, color="#AAAAAA", linewidth=0.8, zorder=3.0)
    if group.least_x is not None and group.most_x is not None:
        axes.hlines(group.y, group.least_x, group.most_x, color="#555555", linewidth=1.0, zorder=3.2)
        for ends in (group.least_x, group.most_x):
            axes.plot(ends, group.y, linestyle="none", marker="|", markersize=5.0, color="#555555", zorder=3.2)
    for place, (x, y) in enumerate(zip(group.x, group.y, strict=True)):
        axes.plot([x], [y], zorder=4.0, **_mark_look(group, place, looks))


def _mark_look(group: PointGroup, place: int, looks: _Looks) -> dict[str, Any]:
    look = {"linestyle": "none", "marker": looks.marker(group.label), "markersize": _MARK_SIZE}
    if group.shades is not None and looks.shades is not None:
        colour = matplotlib.colormaps[_SHADES](float(looks.shades(group.shades[place])))
        return look | {"markerfacecolor": colour, "markeredgecolor": "black"}
    return look | _filled(looks.colour(group.label), looks.fill(group.kind))


def _filled(colour: str, fill: str) -> dict[str, Any]:
    look = {"color": colour, "fillstyle": fill, "markerfacecoloralt": "white", "markeredgewidth": 1.4}
    return look | ({"fillstyle": "full", "markerfacecolor": "white"} if fill == "none" else {})


def _explain(axes: Axes, chart: RooflineChart, looks: _Looks) -> None:
    """Add to what the legend collects: each main roof, each label, and, where fillings tell kinds, each kind."""
    groups = [group for panel in chart.panels for group in panel.groups]
    first = {group.label: group for group in reversed(groups)}
    roofs = {roof.label: roof for panel in chart.panels for roof in _main(panel.roofs)}
    for label in dict.fromkeys((*roofs, *(group.label for group in groups))):
        look = _roof_look(roofs[label], looks) if label in roofs else {"linestyle": "none"}
        if label in first:
            colour = _SIDE_COLOUR if looks.shades else looks.colour(label)
            fill = looks.fill(label) if first[label].kind == label and not looks.shades else _FILLS[0]
            look |= {"marker": looks.marker(label), "markersize": _MARK_SIZE, **_filled(colour, fill)}
        axes.plot([], [], label=label, **look)
    if looks.shades is None and len(looks.kinds) > 1 and any(group.label != group.kind for group in groups):
        for kind in looks.kinds:
            look = _filled("#555555", looks.fill(kind)) | {"marker": "o", "markersize": _MARK_SIZE}
            axes.plot([], [], label=kind, linestyle="none", **look)
