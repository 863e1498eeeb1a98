"""lm-Meter's printed accuracies, computed again from its printed latencies, within what rounding allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

from perfsuite.experiments.fidelity.published import PublishedFidelity, PublishedRow
from perfsuite.experiments.fidelity.scored_run import accuracy_percent, scaled_error_us_per_ms

#: What floating point may be off by at the end of an interval.
_SLACK = 1e-9
#: An accuracy of 100 percent less a tenth of the scaled error, which is in thousandths.
_PERCENT, _US_PER_MS_PER_PERCENT = 100.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedScore:
    """A printed score beside what the printed latencies give."""

    printed: float
    #: From the latencies as printed, and the ends of what they can have been before they were rounded.
    computed: float
    least: float
    most: float
    #: In which steps it is printed.
    resolution: float

    @property
    def is_within(self) -> bool:
        """Whether some latencies that are printed like these have a score that rounds to the printed one."""
        half = self.resolution / 2.0
        return self.least - half - _SLACK <= self.printed <= self.most + half + _SLACK

    @property
    def is_cut(self) -> bool:
        """Whether it is outside, and within had the last digits been cut off in place of rounded."""
        cut = self.least - self.resolution - _SLACK <= self.printed <= self.most + _SLACK
        return cut and not self.is_within


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    """What became of one row."""

    row: PublishedRow
    #: None where the row has no latencies.
    accuracy: PrintedScore | None
    scaled_error: PrintedScore | None
    #: Whether the two printed scores are one, as far as they are printed: accuracy is 100 less a tenth of the error.
    scores_agree: bool

    @property
    def is_within(self) -> bool | None:
        """Whether both scores are within what rounding allows; None where nothing can be computed."""
        if self.accuracy is None or self.scaled_error is None:
            return None
        return self.accuracy.is_within and self.scaled_error.is_within


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanCheck:
    """A stated mean beside that of the printed rows."""

    table: str
    device: str | None
    stated_percent: float
    computed_percent: float
    is_within: bool


def check_rows(published: PublishedFidelity) -> tuple[RowCheck, ...]:
    """Compute the scores of each row again.

    A latency printed as L in steps of r was between L - r/2 and L + r/2, and so was its ground truth G. The relative
    error abs(L / G - 1) is then between those of the smallest and of the largest ratio, and 0 at least where 1 lies
    between them. A printed score is within where it is no further than half its own step from that interval.
    """
    return tuple(_check(row, published) for row in published.rows)


def check_means(published: PublishedFidelity) -> Iterator[MeanCheck]:
    """Yield each stated mean; it is within where it is no further from the printed rows' mean than rounding explains.

    The mean of rounded numbers is off by half a step at most, and the stated one is rounded itself.
    """
    for stated in published.stated_means:
        rows = [row for row in published.rows if (row.table, row.device) == (stated.table, stated.device)]
        computed = mean(row.accuracy_percent for row in rows)
        yield MeanCheck(
            table=stated.table,
            device=stated.device,
            stated_percent=stated.accuracy_percent,
            computed_percent=computed,
            is_within=abs(computed - stated.accuracy_percent) <= published.accuracy_resolution_percent + _SLACK,
        )


def _check(row: PublishedRow, published: PublishedFidelity) -> RowCheck:
    accuracy_step = published.accuracy_resolution_percent
    error_step = published.scaled_error_resolution_us_per_ms
    from_error = _PERCENT - row.scaled_error_us_per_ms / _US_PER_MS_PER_PERCENT
    allowed = (accuracy_step + error_step / _US_PER_MS_PER_PERCENT) / 2.0
    accuracy = scaled_error = None
    if row.measured_ns is not None and row.ground_truth_ns is not None:
        least, most = _scaled_errors(row.measured_ns, row.ground_truth_ns, published.latency_resolution_ns / 2.0)
        accuracy = PrintedScore(
            printed=row.accuracy_percent,
            computed=accuracy_percent(row.measured_ns, row.ground_truth_ns),
            least=_PERCENT - most / _US_PER_MS_PER_PERCENT,
            most=_PERCENT - least / _US_PER_MS_PER_PERCENT,
            resolution=accuracy_step,
        )
        computed = scaled_error_us_per_ms(row.measured_ns, row.ground_truth_ns)
        printed = row.scaled_error_us_per_ms
        scaled_error = PrintedScore(printed=printed, computed=computed, least=least, most=most, resolution=error_step)
    return RowCheck(
        row=row,
        accuracy=accuracy,
        scaled_error=scaled_error,
        scores_agree=abs(row.accuracy_percent - from_error) <= allowed + _SLACK,
    )


def _scaled_errors(measured_ns: float, ground_truth_ns: float, half_ns: float) -> tuple[float, float]:
    """Return the least and the most scaled error of latencies that are printed like these."""
    ends = ((measured_ns - half_ns, ground_truth_ns + half_ns), (measured_ns + half_ns, ground_truth_ns - half_ns))
    low, high = (scaled_error_us_per_ms(measured, truth) for measured, truth in ends)
    holds_one = ends[0][0] <= ends[0][1] and ends[1][0] >= ends[1][1]
    return 0.0 if holds_one else min(low, high), max(low, high)
