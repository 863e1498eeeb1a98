"""Judges counted work: an operator that does anything more than it did is a fact, in one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from perfsuite.errors import MeasurementError
from perfsuite.records.case import COUNTED
from perfsuite.records.counts import METRICS, CountedWork, OwnCounts
from perfsuite.records.outcome import Judgement, Outcome, told_judgement

#: What a whole phase may differ by: between its operators lie the worker's own looks at the process, which read paths,
#: and the engine's bookkeeping, which looks tensors up by their addresses. *Source*: docs/results.md, 'Counted work':
#: 0.016 % of decode's writes on an emulated machine with another kernel.
PHASE_MARGIN_RATIO = 5e-4

#: What a call of a function may differ by: where something is looked up by its address, what else was loaded has a
#: part in how long that takes. Allocations are exact.
CALL_MARGIN_RATIO = 3e-3
_EXACT = ("allocations", "bytes_allocated")

#: What every verdict by counts leaves open.
BLIND_TO = "counts do not see stalls, the layout in caches, contention or clocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountChange:
    """One count, and what it was; None where it is not there."""

    case_id: str
    before: int | None
    now: int | None
    #: What it may differ by, as a share of what it was.
    margin_ratio: float

    @property
    def metric(self) -> str:
        return self.case_id.rpartition("/")[2].replace("_", " ")

    @property
    def ratio(self) -> float | None:
        """The change as a share of what was; None without one."""
        return (self.now - self.before) / self.before if self.now is not None and self.before else None

    @property
    def differs(self) -> bool:
        """Whether it is another than it was, by more than it may be."""
        before, now = self.before or 0, self.now or 0
        return abs(now - before) > self.margin_ratio * before or (self.before is None) != (self.now is None)

    @property
    def is_more(self) -> bool:
        """Whether there is more work, or work where there was none."""
        return self.differs and (self.now or 0) > (self.before or 0)


def count_changes(before: CountedWork, now: CountedWork) -> dict[str, CountChange]:
    """Return every count by the id of its case: operators are judged exactly, whole phases by `PHASE_MARGIN_RATIO`.

    Raises MeasurementError: they are of different work, so no count says anything about the other.
    """
    for field in ("model", "model_digest", "scenario", "settings", "compiler", "processor"):
        if getattr(before, field) != getattr(now, field):
            raise MeasurementError(
                f"{field} is {getattr(now, field)}, and was {getattr(before, field)} when the counts were kept; "
                "count with the same, or record new ones"
            )
    kept, found = before.counts, now.counts
    changes = (
        CountChange(
            case_id=f"{COUNTED}/{now.prefix}/{name}",
            before=kept.get(name),
            now=found.get(name),
            margin_ratio=0.0 if name.count("/") > 1 else PHASE_MARGIN_RATIO,
        )
        for name in dict.fromkeys((*kept, *found))
    )
    return {change.case_id: change for change in changes}


def judge_count(change: CountChange) -> Judgement:
    """Judge one count: REGRESSED where there is more, IMPROVED where there is less, and PASS where it is the same."""
    return _judged(change.case_id, change, [change])


def call_changes(before: OwnCounts, now: OwnCounts, margin_ratio: float | None = None) -> tuple[CountChange, ...]:
    """Return every count of a call, instructions first; `margin_ratio` is its test's own, for all of them."""
    exactly = {name: 0.0 if name in _EXACT else CALL_MARGIN_RATIO for name in METRICS}
    return tuple(
        CountChange(
            case_id=f"{now.case_id}/{name}",
            before=getattr(before.counts, name),
            now=getattr(now.counts, name),
            margin_ratio=exactly[name] if margin_ratio is None else margin_ratio,
        )
        for name in METRICS
    )


def judge_call(before: OwnCounts, now: OwnCounts, margin_ratio: float | None = None) -> Judgement:
    """Judge a call by all its counts: REGRESSED where it does more of anything; INCOMPARABLE in another Python."""
    for field in (each.name for each in fields(now.python)):
        kept, here = getattr(before.python, field), getattr(now.python, field)
        if kept != here:
            told = f"Python's {field} is {here}, and was {kept} when the counts were kept; record new ones"
            return told_judgement(now.case_id, COUNTED, Outcome.INCOMPARABLE, told)
    changes = call_changes(before, now, margin_ratio)
    return _judged(now.case_id, changes[0], [each for each in changes if each.differs] or changes[:1])


def _judged(case_id: str, first: CountChange, told: Sequence[CountChange]) -> Judgement:
    """Judge a case by some of its counts, which its reason names; the change of the first count is the case's."""
    is_more, differs = any(each.is_more for each in told), any(each.differs for each in told)
    outcome = Outcome.REGRESSED if is_more else Outcome.IMPROVED if differs else Outcome.PASS
    ratio = None if first.ratio is None else 1.0 + first.ratio
    return told_judgement(case_id, COUNTED, outcome, "; ".join(map(_told, told)), ratio)


def _told(change: CountChange) -> str:
    before, now, noun = change.before, change.now, change.metric
    if now is None:
        return f"is not there any more; it was {before:,} {noun}"
    if before is None:
        return f"{now:,} {noun}, where there was nothing"
    if change.differs:
        return f"{now:,} {noun}, {before:,} before" + ("" if change.ratio is None else f" ({change.ratio:+.3%})")
    same = "as before" if now == before else f"within {change.margin_ratio:.2%} of {before:,} before"
    return f"{now:,} {noun}, {same}"


def beside_time(timed: Outcome, changes: Iterable[CountChange]) -> str:
    """Say what the counts of a phase or operator add to the verdict on its time; empty where they add nothing."""
    differing = [change for change in changes if change.differs]
    more = [change for change in differing if change.is_more]
    if timed is Outcome.REGRESSED:
        return f"more work ({_largest(more)})" if more else _elsewhere("slower", differing)
    if timed is Outcome.IMPROVED:
        return f"less work ({_largest(differing)})" if differing and not more else _elsewhere("faster", differing)
    return f"more work ({_largest(more)}), not yet slower" if more and timed.decides else ""


def _elsewhere(word: str, differing: list[CountChange]) -> str:
    return "" if differing else f"the same work, {word}: memory, placement or clock"


def _largest(changes: Iterable[CountChange]) -> str:
    most = max(changes, key=lambda change: abs(change.ratio or 0.0))
    return f"{most.metric} from {most.before or 0:,}" if most.ratio is None else f"{most.metric} {most.ratio:+.2%}"
