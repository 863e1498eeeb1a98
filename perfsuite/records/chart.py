"""What a picture shows, as plain series: nothing of how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

Numbers: TypeAlias = tuple[float, ...]


class Scale(Enum):
    """How an axis is divided."""

    LINEAR = "linear"
    LOG2 = "log2"
    LOG10 = "log10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is shown along an axis."""

    #: With its unit in brackets.
    label: str
    scale: Scale = Scale.LINEAR
    #: The ends of the axis; None where the series decide.
    least: float | None = None
    most: float | None = None
    #: How far the ticks of a linear axis are apart, counted from 0; None where they lie as they come.
    tick_step: float | None = None


class LineRole(Enum):
    """What a line is to a picture."""

    #: Its points were measured or computed one by one.
    SERIES = "series"
    #: A shape of its own, such as a roof: its points are but corners.
    CURVE = "curve"
    #: What others are compared with: a mean, a limit, a fit.
    REFERENCE = "reference"
    #: Beside what is shown, and named at its end: a level of cache, a contour, a range.
    FAINT = "faint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points in order of x; `x` and `y` are of one length."""

    label: str
    x: Numbers
    y: Numbers
    role: LineRole = LineRole.SERIES
    #: The lower edge of a band below the line, such as medians below bests; None where there is none.
    low_y: Numbers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointGroup:
    """Points of one subject and one kind; all series are of one length."""

    label: str
    #: What the points are of, within the subject: a phase, a whole run.
    kind: str = ""
    x: Numbers
    y: Numbers
    #: What is written at each point, empty where it is nothing; none at all where it is ().
    texts: tuple[str, ...] = ()
    #: Whether it rings points of other groups, such as a knee.
    is_ring: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class XYPanel:
    """Lines and points over axes of their own."""

    title: str = ""
    x_axis: Axis
    y_axis: Axis
    lines: tuple[Line, ...] = ()
    groups: tuple[PointGroup, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    #: What the picture shows, as a finding.
    title: str
    #: Of what, under which conditions, and after whom.
    note: str
    n_columns: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class XYChart(_Picture):
    """Panels of lines and points; one label is one subject in all of them."""

    panels: tuple[XYPanel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatPanel:
    """A value at each point of an even grid: `values[row][column]` at y[row] and x[column]."""

    title: str
    x: Numbers
    y: Numbers
    values: tuple[Numbers, ...]
    #: A line across the grid, such as where two bounds meet; None where it does not cross.
    boundary: Line | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(_Picture):
    """Panels of positive values under one scale of colours, which is logarithmic."""

    x_axis: Axis
    y_axis: Axis
    colour_axis: Axis
    panels: tuple[HeatPanel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarLayer:
    """A part of each bar, in the unit of the chart's heights."""

    label: str
    heights: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPanel:
    """Bars, one a category, of layers from the bottom up."""

    title: str
    layers: tuple[BarLayer, ...]

    @property
    def totals(self) -> Numbers:
        return tuple(sum(heights) for heights in zip(*(layer.heights for layer in self.layers), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedBars(_Picture):
    """Panels of bars over the same categories, drawn as shares with their totals above."""

    x_label: str
    #: Of what the shares are.
    height_label: str
    categories: tuple[str, ...]
    panels: tuple[BarPanel, ...]


Chart: TypeAlias = XYChart | HeatMap | StackedBars
