"""Where a case's nightly times changed and stayed changed: advice, which moves no outcome and no exit code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from operator import attrgetter
from statistics import median

from perfsuite.records.fingerprint import differences
from perfsuite.records.outcome import Outcome
from perfsuite.records.trend_point import TrendPoint
from perfsuite.units import format_change, format_count, format_ns
from perfsuite.verdict.drift import MOST_DRIFT_RATIO, sentinel_of
from perfsuite.verdict.significance import Change
from perfsuite.verdict.steps import STANDARD_STEPS, Step, StepDesign, find_steps

#: What was not measured properly is no night.
_NOT_MEASURED = (Outcome.INVALID, Outcome.IMPOSSIBLE)

#: Nights on either side of a change of the fingerprint whose medians are shown.
_NIGHTS_BESIDE = 7

#: Runs of another machine after which the ones before it have ended.
_FEWEST_TO_REPLACE = 2


class Confidence(str, Enum):
    """How sure a change point is, in words."""

    #: Even the smallest change that the 99 % bounds allow would be reported.
    HIGH = "high confidence"
    #: The change is real by the rank test, yet it may be smaller than it looks.
    MODERATE = "moderate confidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The level of a case on one device changed between two runs."""

    #: The last run of the old level, and the first of the new one.
    before: TrendPoint
    after: TrendPoint
    #: Medians of the levels as they were measured, ns.
    old_ns: int
    new_ns: int
    #: New over old, the drift of the sentinel divided out; the bounds hold one-sided at 99 %.
    change: Change
    #: Nights that were compared.
    n_before: int
    n_after: int
    confidence: Confidence
    #: The sentinel whose drift was divided out; None where a night lacks it, or the case follows none.
    sentinel: str | None

    @property
    def text(self) -> str:
        """From how much to how much, and how sure, in one line."""
        ratios = (self.change.estimate_ratio, self.change.lower_ratio, self.change.upper_ratio)
        estimate, lower, upper = map(format_change, ratios)
        nights = f"{format_count(self.n_before, 'night')} before, {self.n_after} since"
        drift = f", the {self.sentinel} sentinel's drift divided out" if self.sentinel else ""
        levels = f"{format_ns(self.old_ns)} to {format_ns(self.new_ns)}"
        return f"{levels}: {estimate} ({lower} to {upper}{drift}), {self.confidence.value}, {nights}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChange:
    """What the case was measured on became another, so that its times before and after are no series."""

    before: TrendPoint
    after: TrendPoint
    #: Each field with both values; and both boards, where these are what a series is kept by.
    differences: tuple[str, ...]
    #: Of the nights beside the change, new median over old.
    ratio: float

    @property
    def text(self) -> str:
        """What changed, in one line."""
        what = "; ".join(self.differences) or "what it was measured on"
        is_same = self.before.fingerprint_digest == self.after.fingerprint_digest
        other = "board" if is_same else "fingerprint"
        return f"another {other}, so a new series ({format_change(self.ratio)} at the seam): {what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAdvice:
    """What is reported of one case on one device, in the order of time."""

    changes: tuple[ChangePoint, ...]
    machine_changes: tuple[MachineChange, ...]
    #: Runs that were looked at, and in the series that goes on; of several boards, in the longest that goes on.
    n_nights: int
    n_last_nights: int


def find_changes(
    points: Sequence[TrendPoint], weights: Mapping[str, float], design: StepDesign = STANDARD_STEPS
) -> ChangeAdvice:
    """Find what changed in the runs of one case on one device.

    Runs of one fingerprint are a series; of several boards of a kind that are reached over a link each has its own, or
    the difference between them would be taken for a change. Runs that were slowed down on purpose or measured in pairs
    (``--against``), and those in which the case was not measured properly, are left out.

    Points are in the order of time; weights say how far times follow the drift of each sentinel.
    """
    nights = [night for night in points if _is_night(night)]
    series = _by_machine(nights)
    changes = [change for each in series for change in _changes(each, weights, design)]
    seams = [(replaced, new) for new in series if (replaced := _replaced_by(new, series))]
    return ChangeAdvice(
        changes=tuple(sorted(changes, key=lambda change: change.after.started_at)),
        machine_changes=tuple(
            _machine_change(max(replaced, key=lambda each: each[-1].started_at), new) for replaced, new in seams
        ),
        n_nights=len(nights),
        n_last_nights=_n_last_nights(series, design),
    )


def _is_night(night: TrendPoint) -> bool:
    """Say whether a run is one of a series; as of a baseline, runs in pairs and slowed ones are not."""
    is_plain = not night.is_injected and night.against is None
    return (night.measured_ns or 0) > 0 and is_plain and night.outcome not in _NOT_MEASURED


def _by_machine(nights: Sequence[TrendPoint]) -> list[list[TrendPoint]]:
    series: dict[tuple[str | None, str | None], list[TrendPoint]] = {}
    for machine, following in groupby(nights, key=attrgetter("fingerprint_digest", "kept_by")):
        series.setdefault(machine, []).extend(following)
    return list(series.values())


def _n_last_nights(series: Sequence[Sequence[TrendPoint]], design: StepDesign) -> int:
    """Return how long the series that goes on is: of each board the last one, and of these the longest.

    One that another replaced has ended, and so has one after whose last run another alone shows changes.
    """
    replaced = [id(old) for new in series for old in _replaced_by(new, series)]
    last: dict[str | None, Sequence[TrendPoint]] = {}
    for each in sorted(series, key=lambda each: each[-1].started_at):
        if id(each) not in replaced and not _is_left_behind(each, series, design):
            last[each[-1].kept_by] = each
    return max(map(len, last.values()), default=0)


def _is_left_behind(old: Sequence[TrendPoint], series: Sequence[Sequence[TrendPoint]], design: StepDesign) -> bool:
    """Say whether some other series has since had as many runs as showing a change takes."""
    ended_at, started_at = old[-1].started_at, attrgetter("started_at")
    return any(len(each) - bisect_right(each, ended_at, key=started_at) >= design.least_series for each in series)


def _replaced_by(new: Sequence[TrendPoint], series: Sequence[Sequence[TrendPoint]]) -> tuple[Sequence[TrendPoint], ...]:
    """Return the series that had all ended when `new` began: the board's own where it has some, else all earlier ones.

    Nothing where one of them goes on: series side by side replace none. One run of a board that joins others may have
    been the last of a night, so it replaces none either.
    """
    began_at = new[0].started_at
    earlier = [each for each in series if each[0].started_at < began_at]
    own = [each for each in earlier if each[0].kept_by == new[0].kept_by]
    if not own and len(new) < _FEWEST_TO_REPLACE:
        return ()
    rivals = own or earlier
    return tuple(rivals) if all(each[-1].started_at < began_at for each in rivals) else ()


def _changes(series: Sequence[TrendPoint], weights: Mapping[str, float], design: StepDesign) -> list[ChangePoint]:
    if len(series) < design.least_series:
        return []
    sentinel = sentinel_of(series[0].case_id)
    weight_ratio = weights.get(sentinel or "", 0.0)
    times_ns = [float(night.measured_ns or 0) for night in series]
    found = (night.sentinels_ns.get(sentinel or "") for night in series)
    sentinels_ns = [each for each in found if each and weight_ratio]
    if len(sentinels_ns) < len(series):
        sentinel = None
    else:
        times_ns = _without_drift(times_ns, sentinels_ns, weight_ratio)
    return [_change_point(series, step, sentinel, design) for step in find_steps(times_ns, design)]


def _without_drift(times_ns: Sequence[float], sentinels_ns: Sequence[int], weight_ratio: float) -> list[float]:
    """Return the times as they would have been with the sentinel as it usually was.

    What it moved by beyond the most that is divided out stays in the times: the device has changed, and that shows.
    """
    usual_ns, most = median(sentinels_ns), 1.0 + MOST_DRIFT_RATIO
    drifts = (min(max(each / usual_ns, 1.0 / most), most) for each in sentinels_ns)
    return [float(time_ns / drift**weight_ratio) for time_ns, drift in zip(times_ns, drifts, strict=True)]


def _change_point(series: Sequence[TrendPoint], step: Step, sentinel: str | None, design: StepDesign) -> ChangePoint:
    old, new = series[step.first : step.index], series[step.index : step.end]
    least = 1.0 + design.least_effect_ratio
    is_large = step.change.lower_ratio >= least or step.change.upper_ratio <= 1.0 / least
    return ChangePoint(
        before=old[-1],
        after=new[0],
        old_ns=_level_ns(old),
        new_ns=_level_ns(new),
        change=step.change,
        n_before=len(old),
        n_after=len(new),
        confidence=Confidence.HIGH if is_large else Confidence.MODERATE,
        sentinel=sentinel,
    )


def _machine_change(old: Sequence[TrendPoint], new: Sequence[TrendPoint]) -> MachineChange:
    before, after = old[-1], new[0]
    found = differences(before.fingerprint or {}, after.fingerprint or {})
    if before.kept_by != after.kept_by:
        boards = (each.board.text if each.kept_by and each.board else "not known" for each in (before, after))
        found = (*found, f"board {', now '.join(boards)}")
    ratio = _level_ns(new[:_NIGHTS_BESIDE]) / _level_ns(old[-_NIGHTS_BESIDE:])
    return MachineChange(before=before, after=after, differences=found, ratio=ratio)


def _level_ns(nights: Sequence[TrendPoint]) -> int:
    return round(median(night.measured_ns for night in nights if night.measured_ns))
