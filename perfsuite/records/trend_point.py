"""One case in one run of a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

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
    samples_ns: tuple[int, ...]
    expected_ns: int | None
    baseline_ns: int | None
    #: By sentinel: its median beside the case, ns.
    sentinels_ns: Mapping[str, int]
    fingerprint: Mapping[str, str] | None
    fingerprint_digest: str | None
    commit: Commit | None
    engine: str | None
    is_injected: bool = False
    against: str | None = None
    board: BoardName | None = None

    @property
    def kept_by(self) -> str | None:
        """The identity of the board that a series of runs is kept by; None where machines of a kind share one."""
        return self.board.kept_by if self.board else None


class Night(NamedTuple):
    """What a search for changes asks of a case's run: the least that it can be, for there are millions."""

    #: What the run is known by to whoever searches.
    run: Any
    #: Since 1970, UTC, in microseconds.
    started_at_us: int
    measured_ns: int | None
    outcome: str
    #: Whether it was neither slowed down on purpose nor measured in pairs.
    is_plain: bool
    #: Medians of the sentinels beside the case.
    memory_ns: int | None
    compute_ns: int | None
    fingerprint_digest: str | None
    #: The identity of the board that a series of runs is kept by.
    kept_by: str | None

    def sentinel_ns(self, name: str) -> int | None:
        """Return a sentinel's median; None where there is none above 0."""
        time_ns = self.memory_ns if name == "memory" else self.compute_ns if name == "compute" else None
        return time_ns if time_ns is not None and time_ns > 0 else None


def has_boards(points: Iterable[TrendPoint]) -> bool:
    """Say whether runs are of more than one board, so that each must be named."""
    return len({point.kept_by for point in points}) > 1
