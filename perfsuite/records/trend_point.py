"""One case in one run of a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName, Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """What one run measured of a case, and what may explain it; None is 'not known'."""

    run_id: str
    #: UTC.
    started_at: datetime
    device: str
    case_id: str
    outcome: Outcome
    measured_ns: int | None
    samples_ns: tuple[int, ...] = ()
    expected_ns: int | None = None
    baseline_ns: int | None = None
    #: By sentinel: its median beside the case, ns.
    sentinels_ns: Mapping[str, int] = field(default_factory=dict)
    fingerprint: Mapping[str, str] | None = None
    fingerprint_digest: str | None = None
    commit: Commit | None = None
    engine: str | None = None
    is_injected: bool = False
    against: str | None = None
    board: BoardName | None = None

    @property
    def kept_by(self) -> str | None:
        """The identity of the board that a series of runs is kept by; None where machines of a kind share one."""
        return self.board.kept_by if self.board else None


def has_boards(points: Iterable[TrendPoint]) -> bool:
    """Say whether runs are of more than one board, so that each must be named."""
    return len({point.kept_by for point in points}) > 1
