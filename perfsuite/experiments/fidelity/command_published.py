"""``perfsuite fidelity --published``: lm-Meter's printed accuracies, computed again from its printed latencies."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.published import published_dir
from perfsuite.experiments.fidelity.scored_run import accuracy_percent, scaled_error_us_per_ms
from perfsuite.records.codec import Number, Positive, Size, read_json

#: The schema that is read.
_FILE_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """One printed row."""

    #: ``phases`` or ``kernels``.
    table: str
    #: None where the table does not tell.
    device: str | None
    #: What the phase or the kernel belongs to: an architecture, or a phase.
    subject: str
    name: str
    #: None where they were not taken along.
    measured_ns: Size | None
    ground_truth_ns: Size | None
    accuracy_percent: Number
    scaled_error_us_per_ms: Number

    def __post_init__(self) -> None:
        """Refuse one latency without the other."""
        if (self.measured_ns is None) is not (self.ground_truth_ns is None):
            raise ValueError(f"{self.name} has one of measured_ns and ground_truth_ns, expected both or neither")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """Who printed it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedMean:
    """A mean accuracy that the paper states of a table's rows."""

    table: str
    device: str | None
    accuracy_percent: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFidelity:
    """All rows of a paper, and in which steps their numbers are printed."""

    paper: Paper
    latency_resolution_ns: Positive
    accuracy_resolution_percent: Positive
    scaled_error_resolution_us_per_ms: Positive
    rows: tuple[PublishedRow, ...]
    stated_means: tuple[StatedMean, ...]


def published_fidelity(path: Path | None = None) -> PublishedFidelity:
    """Read lm-Meter's rows, or another file of the same fields.

    Raises `PerfsuiteError`: the file cannot be read, has another schema, or a field that is missing, unknown or of
    another type.
    """
    path = path or published_dir() / "fidelity" / "lm-meter.json"
    return read_json(path, PublishedFidelity, PerfsuiteError, "restore it from version control", schema=_FILE_SCHEMA)


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
    #: The accuracy and the scaled error; None where the row has no latencies.
    scores: tuple[PrintedScore, PrintedScore] | None
    #: Whether the two printed scores are one, as far as they are printed: accuracy is 100 less a tenth of the error.
    scores_agree: bool

    @property
    def is_within(self) -> bool | None:
        """Whether both scores are within what rounding allows; None where nothing can be computed."""
        return None if self.scores is None else all(score.is_within for score in self.scores)


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
        off = abs(computed - stated.accuracy_percent)
        yield MeanCheck(
            table=stated.table,
            device=stated.device,
            stated_percent=stated.accuracy_percent,
            computed_percent=computed,
            is_within=off <= published.accuracy_resolution_percent + _SLACK,
        )


def _check(row: PublishedRow, published: PublishedFidelity) -> RowCheck:
    accuracy_step, error_step = published.accuracy_resolution_percent, published.scaled_error_resolution_us_per_ms
    scores = None
    if row.measured_ns is not None and row.ground_truth_ns is not None:
        pair = row.measured_ns, row.ground_truth_ns
        least, most = _scaled_errors(*pair, published.latency_resolution_ns / 2.0)
        accuracy = PrintedScore(
            printed=row.accuracy_percent,
            computed=accuracy_percent(*pair),
            least=_accuracy(most),
            most=_accuracy(least),
            resolution=accuracy_step,
        )
        printed, computed = row.scaled_error_us_per_ms, scaled_error_us_per_ms(*pair)
        error = PrintedScore(printed=printed, computed=computed, least=least, most=most, resolution=error_step)
        scores = accuracy, error
    off = abs(row.accuracy_percent - _accuracy(row.scaled_error_us_per_ms))
    allowed = (accuracy_step + error_step / _US_PER_MS_PER_PERCENT) / 2.0
    return RowCheck(row=row, scores=scores, scores_agree=off <= allowed + _SLACK)


def _accuracy(scaled_error: float) -> float:
    return _PERCENT - scaled_error / _US_PER_MS_PER_PERCENT


def _scaled_errors(measured_ns: float, ground_truth_ns: float, half_ns: float) -> tuple[float, float]:
    """Return the least and the most scaled error of latencies that are printed like these."""
    ends = ((measured_ns - half_ns, ground_truth_ns + half_ns), (measured_ns + half_ns, ground_truth_ns - half_ns))
    low, high = (scaled_error_us_per_ms(measured, truth) for measured, truth in ends)
    holds_one = ends[0][0] <= ends[0][1] and ends[1][0] >= ends[1][1]
    return 0.0 if holds_one else min(low, high), max(low, high)


#: Raised whenever a field of the JSON changes its meaning.
SCHEMA = 1

_SAID = {True: "within", False: "outside", None: "no latencies"}


def run_published(arguments: argparse.Namespace) -> int:
    """Print each row with what rounding allows, then what is outside; `arguments.json` is for programs."""
    published = published_fidelity()
    rows, means = check_rows(published), tuple(check_means(published))
    plain = {"schema": SCHEMA, "paper": published.paper.name, "rows": [_plain(each) for each in rows]}
    plain["means"] = [asdict(each) for each in means]
    give(Answer(parts=lambda: _parts(rows, means), plain=lambda: plain), arguments)
    return 0


def _plain(check: RowCheck) -> dict[str, Any]:
    plain = {**asdict(check.row), "is_within": check.is_within, "scores_agree": check.scores_agree}
    for name, score in zip(("accuracy", "scaled_error"), check.scores or (None, None), strict=True):
        plain[name] = score and {**asdict(score), "is_within": score.is_within, "is_cut": score.is_cut}
    return plain


def _parts(rows: Sequence[RowCheck], means: Sequence[MeanCheck]) -> Iterator[Part]:
    cells = [
        (
            *(each.row.subject, each.row.name, f"{accuracy.printed:.2f}", f"{accuracy.computed:.2f}"),
            *(f"{error.printed:.3f}", f"{error.computed:.3f}", _SAID[each.is_within]),
        )
        for each in rows
        if each.scores is not None
        for accuracy, error in (each.scores,)
    ]
    yield Sheet(("of", "name", ">accuracy %", ">computed", ">µs/ms", ">computed", ">rounding"), cells)
    computed = [each.is_within for each in rows if each.is_within is not None]
    yield f"{sum(computed)} of {len(computed)} rows with latencies are within rounding"
    for each in rows:
        for sentence in _complaints(each):
            yield f"  {each.row.device or each.row.table}, {each.row.subject}, {each.row.name}: {sentence}"
    n_agree = sum(each.scores_agree for each in rows)
    yield f"in {n_agree} of {len(rows)} rows the printed accuracy is that of the printed scaled error"
    for stated in means:
        yield (
            f"{stated.device}, {stated.table}: mean of the printed rows {stated.computed_percent:.2f} %, stated "
            f"{stated.stated_percent:.2f} %, {_SAID[stated.is_within]} rounding"
        )


def _complaints(check: RowCheck) -> list[str]:
    found = []
    for score, name, unit in zip(check.scores or (), ("accuracy", "scaled error"), ("%", "µs/ms"), strict=False):
        if not score.is_within:
            reason = ", as if digits had been cut off" if score.is_cut else ""
            ends = f"{score.least:.4f} to {score.most:.4f}"
            found.append(f"{name} {score.printed:g} {unit}, the latencies give {ends}{reason}")
    if not found and not check.scores_agree:
        error = check.row.scaled_error_us_per_ms
        found.append(f"accuracy {check.row.accuracy_percent:g} % is not that of its scaled error, {error:g} µs/ms")
    return found
