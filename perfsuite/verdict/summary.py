"""What is stored of each case, summed up: reference, spreads, anchor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfsuite.verdict.creep import creep_ratio
from perfsuite.verdict.entry import BaselineEntry
from perfsuite.verdict.prediction import spread_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """One stored case; None where there is too little to tell."""

    case_id: str
    n_sessions: int
    median_ns: int
    within_ratio: float | None
    between_ratio: float | None
    anchor_ns: int | None
    #: The reference over the anchor, the drift of the sentinel divided out.
    since_anchor_ratio: float | None


def case_summaries(entry: BaselineEntry, weights: Mapping[str, float]) -> tuple[CaseSummary, ...]:
    """Sum up every case of an entry."""
    return tuple(_summary(entry, case_id, median_ns, weights) for case_id, median_ns in entry.references_ns().items())


def _summary(entry: BaselineEntry, case_id: str, median_ns: int, weights: Mapping[str, float]) -> CaseSummary:
    samples = [session.samples_ns[case_id] for session in entry.sessions_of(case_id)]
    spread = spread_of(samples)
    return CaseSummary(
        case_id=case_id,
        n_sessions=len(samples),
        median_ns=median_ns,
        within_ratio=spread.within_ratio,
        between_ratio=spread.between_ratio,
        anchor_ns=entry.anchor.cases_ns.get(case_id),
        since_anchor_ratio=creep_ratio(entry, case_id, weights),
    )
