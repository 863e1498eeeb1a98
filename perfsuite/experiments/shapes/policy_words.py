"""What a table says, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from perfsuite.experiments.shapes.policy_record import Gain, PolicyRow, PolicyTable


def finding(table: PolicyTable) -> str:
    """Return such as ``cpu throughout, n 1 to 377`` or ``cpu up to n 143, opencl above``."""
    rows, dimension = table.rows, table.dimension
    if len(rows) == 1:
        return f"{rows[0].choice} throughout, {dimension} {range_text(rows[0].least, rows[0].most)}"
    parts = [f"{row.choice} up to {dimension} {row.most}" for row in rows[:-1]]
    return f"{', '.join(parts)}, {rows[-1].choice} above; {_interpolated(rows, dimension)}"


def promise(table: PolicyTable) -> str:
    """Return what the whole table promises over its default, or that it promises nothing, and over the worst choice."""
    if all(row.choice == table.default for row in table.rows):
        told = f"promises no gain over the best single choice, {table.default}, which is what it says"
    else:
        told = f"promises {gain_text(table.gain_over_default)} over the best single choice, {table.default}"
    if table.worst == table.default:
        return told
    return f"{told}; {gain_text(table.gain_over_worst)} over the worst, {table.worst}"


def gain_text(gain: Gain) -> str:
    """Return a gain with its interval."""
    if gain.lower_ratio == gain.upper_ratio:
        return f"{gain.ratio:.3g}x"
    return f"{gain.ratio:.3g}x ({gain.lower_ratio:.3g} to {gain.upper_ratio:.3g})"


def range_text(least: int, most: int) -> str:
    """Return both ends, or the one size that there is."""
    return str(least) if least == most else f"{least} to {most}"


def _interpolated(rows: Sequence[PolicyRow], dimension: str) -> str:
    gaps = [f"{left.measured_most} and {right.measured_least}" for left, right in pairwise(rows)]
    return f"interpolated between {dimension} {', '.join(gaps)}"
