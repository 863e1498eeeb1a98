"""Made-up histories of cases, for tests of what shows them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName, Commit
from perfsuite.records.trend_point import TrendPoint
from perfsuite.report.page.history import ChangeMark

BEGAN_AT = datetime(2026, 1, 1, 2, tzinfo=timezone.utc)
DECODE = "phase/smollm2-135m-q8_0/siso/decode"


def course(
    case_id: str = DECODE, *, n_nights: int = 30, board: str = "", usual_ns: int = 5_000_000, changed_at: int = 20
) -> Iterator[TrendPoint]:
    """Nights of one case, 6 % slower from one on."""
    for night in range(n_nights):
        yield TrendPoint(
            run_id=f"run-{board}-{night}",
            started_at=BEGAN_AT + timedelta(days=night),
            device="rubikpi",
            case_id=case_id,
            outcome=Outcome.PASS,
            measured_ns=round(usual_ns * (1.06 if night >= changed_at else 1.0) + night % 2 * 1000),
            fingerprint={"soc": "one"},
            fingerprint_digest="one",
            commit=Commit(sha=f"{night:040x}", branch="main"),
            board=BoardName(identity=board * 4, hostname=board, is_linked=True) if board else None,
        )


def mark_at(points: list[TrendPoint], night: int = 20, **told: object) -> ChangeMark:
    """The change of a course at a night."""
    words: dict[str, object] = {"ratio": 1.06, "text": "5.00 ms to 5.30 ms: +6.0 %", "commits": ("abc1234 a change",)}
    return ChangeMark(before=points[night - 1], after=points[night], **(words | told))  # type: ignore[arg-type]
