"""Rows of one sweep in their order, and what they are compared by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.units import format_flops_per_s
from perfsuite.verdict.compare import MIN_SAMPLES


def rows_of(run: RooflineRun, sweep: str, kind: RowKind) -> tuple[Row, ...]:
    """Return the rows of a sweep that are of one kind, in the order of the sweep."""
    return tuple(row for row in run.rows if row.sweep == sweep and row.kind is kind)


def first_and_last(run: RooflineRun, rows: Sequence[Row]) -> tuple[float, float]:
    """Return the rate of the last row over that of the first, and the spread of both together."""
    first, last = rows[0], rows[-1]
    return run.point(last).flops_per_s / run.point(first).flops_per_s, spread_of_both(first, last)


def spread_of_both(first: Row, second: Row) -> float:
    """Return what two points may differ by; of fewer than `MIN_SAMPLES` processes it is not known: anything."""
    is_known = min(len(first.samples_ns), len(second.samples_ns)) >= MIN_SAMPLES
    return first.spread_ratio + second.spread_ratio if is_known else math.inf


def order_of(run: RooflineRun, rows: Sequence[Row]) -> str:
    """Tell the rate of each setting."""
    return ", ".join(f"{row.setting} {format_flops_per_s(run.point(row).flops_per_s)}" for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One point in two runs."""

    case: str
    #: P of the second run over that of the first.
    ratio: float
    #: What the two may differ by: the half ranges of both runs' processes together.
    spread_ratio: float

    @property
    def is_within(self) -> bool:
        """Whether the points differ by no more than their spreads; with fewer than three processes nobody can tell."""
        return abs(math.log(self.ratio)) <= math.log1p(self.spread_ratio)


def agreements(first: RooflineRun, second: RooflineRun) -> Iterator[Agreement]:
    """Compare the points that both runs have, in the order of the first; `PerfsuiteError` where there is none."""
    others = {row.case: row for row in second.rows}
    if others.keys().isdisjoint(row.case for row in first.rows):
        raise PerfsuiteError("the two runs have no point in common; compare runs of the same sweeps and threads")
    for row in first.rows:
        other = others.get(row.case)
        if other is not None:
            yield Agreement(
                case=row.case,
                ratio=second.point(other).flops_per_s / first.point(row).flops_per_s,
                spread_ratio=spread_of_both(row, other),
            )
