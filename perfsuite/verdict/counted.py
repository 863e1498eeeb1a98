"""Judges counted work: an operator that does anything more than it did is a fact, in one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfsuite.errors import MeasurementError
from perfsuite.records.counts import METRICS, CountedWork, CountRow

#: What a whole phase may differ by: between its operators lie the sampler and the engine's own bookkeeping, in which
#: addresses and the kernel's answers may count. Runs on one machine differed by nothing; another was not tried.
PHASE_MARGIN_RATIO = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class CountChange:
    """One count that is another than it was; None where it is not there."""

    case_id: str
    metric: str
    before: int | None
    now: int | None

    @property
    def ratio(self) -> float | None:
        """The change as a share of what was; None without one."""
        return (self.now - self.before) / self.before if self.now is not None and self.before else None

    @property
    def is_more(self) -> bool:
        """Whether there is more work, or work where there was none."""
        return (self.now or 0) > (self.before or 0)


def count_changes(before: CountedWork, now: CountedWork) -> tuple[CountChange, ...]:
    """Return every count that differs, operators exactly and whole phases by more than `PHASE_MARGIN_RATIO`.

    Raises MeasurementError: they are of different work, so no count says anything about the other.
    """
    for field in ("model", "model_digest", "n_prompt", "n_gen", "compiler", "processor"):
        if getattr(before, field) != getattr(now, field):
            raise MeasurementError(
                f"{field} is {getattr(now, field)}, and was {getattr(before, field)} when the counts were kept; "
                "count with the same, or keep new ones with 'perfsuite counts --record'"
            )
    return tuple(_changes(before, now))


def _changes(before: CountedWork, now: CountedWork) -> Iterator[CountChange]:
    kept, found = ({row.name: row for row in each.rows} for each in (before, now))
    for name in dict.fromkeys((*kept, *found)):
        old, new = kept.get(name), found.get(name)
        margin_ratio = PHASE_MARGIN_RATIO if "/" not in name else 0.0
        for metric in METRICS:
            was, is_now = _count(old, metric), _count(new, metric)
            if abs((is_now or 0) - (was or 0)) > margin_ratio * (was or 0) or (was is None) != (is_now is None):
                yield CountChange(case_id=f"counted/{now.name}/{name}", metric=metric, before=was, now=is_now)


def _count(row: CountRow | None, metric: str) -> int | None:
    return None if row is None else int(getattr(row, metric))
