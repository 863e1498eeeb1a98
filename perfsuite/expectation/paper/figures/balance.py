"""The line on which computing and moving take equally long, across a grid of rates or efficiencies."""

from __future__ import annotations

from perfsuite.records.chart import Line, Numbers


def balance_line(slope: float, x: Numbers, y: Numbers) -> Line | None:
    """Draw y = slope x across the grid, from where it enters to where it leaves; None where it misses the grid.

    Both times are inversely proportional to a coordinate each, so they are equal along a line through the origin.
    """
    first, last = max(x[0], y[0] / slope), min(x[-1], y[-1] / slope)
    if first >= last:
        return None
    return Line(label="t_c = t_m", x=(first, last), y=(slope * first, slope * last))
