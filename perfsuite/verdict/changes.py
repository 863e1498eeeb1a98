"""How the cases of a run stand to what is stored: to the reference, and to the anchor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perfsuite.units import format_count
from perfsuite.verdict.drift import from_anchor_ratio
from perfsuite.verdict.entry import BaselineEntry, StoredSession, entry_with
from perfsuite.verdict.match import match_entry
from perfsuite.verdict.significance import Change, compare_sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """One case of a run beside its reference; None where nothing is stored."""

    case_id: str
    #: Medians as they were measured, ns.
    old_ns: int | None
    new_ns: int
    #: New over old, the drift of the sentinel divided out.
    change: Change | None
    #: New over anchor, likewise.
    anchor_ratio: float | None
    #: The drift that was divided out, or why nothing that is stored can be compared with; empty without either.
    drift: str = ""

    @property
    def ratio(self) -> float | None:
        """The estimate of new over old."""
        return self.change.estimate_ratio if self.change else None

    def is_beyond(self, margin_ratio: float) -> bool:
        """Say whether the case is slower than its reference by more than the margin."""
        return self.ratio is not None and self.ratio > 1.0 + margin_ratio


def case_changes(
    entries: Sequence[BaselineEntry],
    session: StoredSession,
    *,
    weights: Mapping[str, float],
    default_spread_ratio: float,
) -> tuple[CaseChange, ...]:
    """Compare every case of a session with the stored ones of the first entry that holds it."""
    return tuple(
        _case_change(entry_with(entries, case_id) or entries[0], session, case_id, weights, default_spread_ratio)
        for case_id in session.samples_ns
    )


def drift_lines(changes: Iterable[CaseChange]) -> Iterator[str]:
    """Yield each drift that was divided out, or was too much for that, with the number of its cases."""
    for drift, count in Counter(each.drift for each in changes if each.drift).items():
        yield f"{format_count(count, 'case')}: {drift}"


def _case_change(
    entry: BaselineEntry,
    session: StoredSession,
    case_id: str,
    weights: Mapping[str, float],
    default_spread_ratio: float,
) -> CaseChange:
    samples = session.samples_ns[case_id]
    match = match_entry(entry, case_id, sentinels_ns=session.sentinels_ns, weights=weights)
    stored = match.sessions_ns
    return CaseChange(
        case_id=case_id,
        old_ns=entry.reference_ns(case_id),
        new_ns=round(median(samples)),
        change=compare_sessions(stored, samples, default_spread_ratio=default_spread_ratio) if stored else None,
        anchor_ratio=from_anchor_ratio(case_id, entry.anchor, session, weights),
        drift=match.problem or match.correction,
    )
