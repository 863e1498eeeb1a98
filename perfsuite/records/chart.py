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
    """What is told along an axis."""

    label: str
    #: None for a ratio or a plain number.
    unit: str | None = None
    scale: Scale = Scale.LINEAR
    #: The ends of the axis; None where the series decide.
    least: float | None = None
    most: float | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePanel:
    """Lines over axes of their own."""

    title: str
    x_axis: Axis
    y_axis: Axis
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Panels of lines; one label is one subject in all of them."""

    #: What the picture shows, as a finding.
    title: str
    #: Of what, under which conditions, and after whom.
    note: str
    n_columns: int
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
class HeatMap:
    """Panels of positive values under one scale of colours, which is logarithmic."""

    title: str
    note: str
    n_columns: int
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
class StackedBars:
    """Panels of bars over the same categories, drawn as shares with their totals above."""

    title: str
    note: str
    n_columns: int
    x_axis: Axis
    height_axis: Axis
    categories: tuple[str, ...]
    panels: tuple[BarPanel, ...]


Chart: TypeAlias = LineChart | HeatMap | StackedBars
