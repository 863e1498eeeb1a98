"""Whether two runs of the same sweeps agree: each point within the spreads that both runs state."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.roofline_run import RooflineRun
from perfsuite.experiments.roofline.series import spread_of_both


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
    """Compare the points that both runs have, in the order of the first.

    Raises PerfsuiteError: there is none.
    """
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
