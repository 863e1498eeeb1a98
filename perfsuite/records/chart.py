"""What a picture shows, as plain series: nothing of how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

Numbers: TypeAlias = tuple[float, ...]


class Scale(Enum):
    """How an axis is divided; the value is the base of the logarithm, None where there is none."""

    LINEAR = None
    LOG2 = 2
    LOG10 = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is shown along an axis."""

    label: str
    #: None for a ratio or a plain number.
    unit: str | None = None
    scale: Scale = Scale.LINEAR
    #: The ends of the axis; None where the series decide.
    least: float | None = None
    most: float | None = None
    #: How far the ticks of a linear axis are apart, counted from 0; None where they lie as they come.
    tick_step: float | None = None

    @property
    def caption(self) -> str:
        """The label with its unit in brackets."""
        return self.label if self.unit is None else f"{self.label} ({self.unit})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points in order of x; `x` and `y` are of one length."""

    label: str
    x: Numbers
    y: Numbers
    #: What the other lines are compared with: a mean, a limit.
    is_reference: bool = False
    #: How far below `y` the same subject also was, as medians below bests; None where that is not shown.
    low_y: Numbers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePanel:
    """Lines over axes of their own."""

    title: str
    x_axis: Axis
    y_axis: Axis
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    #: What the picture shows, as a finding.
    title: str
    #: Of what, under which conditions, and after whom.
    note: str
    n_columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart(_Picture):
    """Panels of lines; one label is one subject in all of them."""

    panels: tuple[LinePanel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatPanel:
    """A value at each point of a grid: `values[row][column]` at y[row] and x[column]."""

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
    #: The value that parts the colours into two, such as a ratio of 1; None where small and large are all there is.
    centre: float | None
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
        """The whole height of each bar."""
        return tuple(sum(heights) for heights in zip(*(layer.heights for layer in self.layers), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedBars(_Picture):
    """Panels of bars over the same categories, drawn as shares with their totals above."""

    x_axis: Axis
    height_axis: Axis
    categories: tuple[str, ...]
    panels: tuple[BarPanel, ...]


class RoofRole(Enum):
    """What a roof is to a picture."""

    #: A device's own: arithmetic over memory.
    MAIN = "main"
    #: Beside it: a level of cache, another type of number, another number of threads.
    SIDE = "side"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofLine:
    """A roof as a polyline: up its slope, through the ridge, along its peak, as far as the picture shows it."""

    label: str
    x: Numbers
    y: Numbers
    role: RoofRole = RoofRole.MAIN
    #: Measured here; False where it is published.
    is_measured: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge:
    """The corner of a roof."""

    label: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """What lies between two edges over the same x."""

    label: str
    x: Numbers
    low_y: Numbers
    high_y: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class PotentialRegion:
    """What lies below one roof: to the left of its ridge memory is the limit, to the right arithmetic."""

    memory: Area
    compute: Area
    #: Lines along which the inference potential is the same.
    contours: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointGroup:
    """Points of one subject and one kind; all series are of one length."""

    label: str
    #: What the points are of, within the subject: a phase, a whole run.
    kind: str
    x: Numbers
    y: Numbers
    #: Between which x each point may lie; None where x is certain.
    least_x: Numbers | None = None
    most_x: Numbers | None = None
    #: Each point's place on the chart's scale of colours; None where the label has a colour of its own.
    shades: Numbers | None = None
    #: What is written at each point, empty where it is nothing; none at all where it is ().
    texts: tuple[str, ...] = ()
    #: Whether a line leads from point to point.
    is_joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePanel:
    """Roofs and the points below them."""

    title: str
    roofs: tuple[RoofLine, ...]
    ridges: tuple[Ridge, ...] = ()
    region: PotentialRegion | None = None
    groups: tuple[PointGroup, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineChart(_Picture):
    """Panels of roofs and points over the same axes, which are logarithmic; one label is one subject in all of them."""

    x_axis: Axis
    y_axis: Axis
    #: What the shades of the points show; None where no group has shades.
    shade_axis: Axis | None
    panels: tuple[RooflinePanel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterPanel:
    """Points over axes of their own, with what is drawn through and around some of them."""

    title: str
    x_axis: Axis
    y_axis: Axis
    groups: tuple[PointGroup, ...]
    #: Such as a frontier.
    lines: tuple[Line, ...] = ()
    #: Points that are ringed, such as a knee; None where nothing is.
    ringed: PointGroup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterChart(_Picture):
    """Panels of points; one label is one subject in all of them, and one kind has one filling."""

    panels: tuple[ScatterPanel, ...]


Chart: TypeAlias = LineChart | HeatMap | StackedBars | RooflineChart | ScatterChart
