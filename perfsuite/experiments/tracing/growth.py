"""The verdict on the growth of attention: whether a position of context costs what it should, and each the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfsuite.records.outcome import Finding, Outcome
from perfsuite.units import format_ns

#: Chance that the slope lies within its bounds.
CONFIDENCE = 0.95

#: How far the time at any context may be from the line.
MOST_DEVIATION_RATIO = 0.25

#: Fewer steps, or fewer different lengths, have no slope.
LEAST_STEPS, LEAST_LENGTHS = 8, 4

_MOST_BLOCKS = 512
_BINS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGrowth:
    """Time of attention over the positions that it works on, by Theil and Sen."""

    slope_ns: float
    lower_ns: float
    upper_ns: float
    intercept_ns: float
    #: The furthest that the line is from the median of an eighth of the lengths, in parts of the time there.
    deviation_ratio: float


def measured_growth(positions: Sequence[int], times_ns: Sequence[int]) -> MeasuredGrowth | None:
    """Fit time over positions; None where there are too few steps or lengths."""
    lengths, where = np.unique(np.asarray(positions, dtype=np.int64), return_inverse=True)
    if len(positions) < LEAST_STEPS or lengths.size < LEAST_LENGTHS:
        return None
    from scipy.stats import theilslopes  # takes a third of a second to load

    parts = np.split(np.asarray(times_ns)[np.argsort(where, kind="stable")], np.cumsum(np.bincount(where))[:-1])
    medians = np.array([np.median(part) for part in parts])
    blocks = [np.array_split(each, min(_MOST_BLOCKS, lengths.size)) for each in (lengths, medians)]
    x, y = (np.array([np.median(block) for block in each]) for each in blocks)
    slope, intercept, lower, upper = theilslopes(y, x, alpha=CONFIDENCE)
    off = (intercept + slope * x - y) / np.maximum(y, 1.0)
    deviation = np.abs([np.median(part) for part in np.array_split(off, min(_BINS, x.size))]).max()
    return MeasuredGrowth(
        slope_ns=float(slope),
        lower_ns=float(lower),
        upper_ns=float(upper),
        intercept_ns=float(intercept),
        deviation_ratio=float(deviation),
    )


def judge_growth(
    positions: Sequence[int],
    times_ns: Sequence[int],
    expected_ns_per_position: float | None,
    tolerance_ratio: float | None,
) -> Finding:
    """Judge the growth of a run.

    SLOW where a position surely costs more than expected times the tolerance, or where the time, though it grows, is
    not on a line. INCONCLUSIVE where the bounds of the slope hold the limit, or no slope is known that was expected;
    INVALID where there is no slope. Positions are those that attention takes as long as, a value each step of decoding.
    """
    if not any(times_ns):
        return Finding(outcome=Outcome.INVALID, reason="no operator of attention was recorded")
    found = measured_growth(positions, times_ns)
    if found is None:
        few = f"{len(times_ns)} steps at {len(set(positions))} lengths of context make no line"
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=f"{few}, expected {LEAST_STEPS} at {LEAST_LENGTHS}")
    text = (
        f"{format_ns(found.slope_ns)} a position (95 % bounds {format_ns(found.lower_ns)} to "
        f"{format_ns(found.upper_ns)}) over {min(positions)} to {max(positions)}"
    )
    if found.lower_ns > 0 and found.deviation_ratio > MOST_DEVIATION_RATIO:
        bent = f"{text}; {found.deviation_ratio:.0%} off the line, {MOST_DEVIATION_RATIO:.0%} at most expected"
        return Finding(outcome=Outcome.SLOW, reason=bent)
    if expected_ns_per_position is None or tolerance_ratio is None:
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=f"{text}; nothing is known of what it should be")
    limit_ns = expected_ns_per_position * tolerance_ratio
    text += f", expected {format_ns(expected_ns_per_position)} and {format_ns(limit_ns)} at most"
    if found.lower_ns > limit_ns:
        return Finding(outcome=Outcome.SLOW, reason=text)
    return Finding(outcome=Outcome.PASS if found.upper_ns <= limit_ns else Outcome.INCONCLUSIVE, reason=text)
