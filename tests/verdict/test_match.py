"""What the store holds for a case of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.verdict.baseline import BaselineFile
from perfsuite.verdict.compare import BaselineMatch
from perfsuite.verdict.entry import StoredSession
from perfsuite.verdict.match import match_case

PREFILL = "phase/a/b/prefill"
STORED = BaselineFile(path=Path("x.json"))
for compute_ns in (1000, 2000):
    STORED = STORED.with_session(
        {"soc": "A"},
        StoredSession(
            recorded_at=str(compute_ns),
            suite_version="1",
            samples_ns={PREFILL: (compute_ns, compute_ns + 10), "mine/x": (5,)},
            sentinels_ns={"compute": (compute_ns,)},
        ),
    )


def matched(case_id: str, compute_ns: int | None = None, soc: str = "A") -> BaselineMatch:
    """Match a case of a run whose compute sentinel took so long."""
    sentinels = {"compute": (compute_ns,)} if compute_ns else {}
    return match_case(STORED, {"soc": soc}, case_id, sentinels_ns=sentinels, weights={"compute": 1.0})


def test_samples_come_by_session() -> None:
    """Without sentinels the samples are as they were measured."""
    assert matched(PREFILL) == BaselineMatch(sessions_ns=((1000, 1010), (2000, 2010)))
    assert matched(PREFILL).reference_ns == 1505


def test_each_session_has_its_own_drift() -> None:
    """Sessions on a machine of another speed come to the same once their sentinels are divided out."""
    found = matched(PREFILL, 3000)
    assert found.sessions_ns[0] == pytest.approx((3000, 3030))
    assert found.sessions_ns[1] == pytest.approx((3000, 3015))
    assert found.correction == "after dividing out a drift of +125.0 % of the compute sentinel"


def test_what_follows_no_sentinel_is_left_alone() -> None:
    """A case of one's own has no correction."""
    assert matched("mine/x", 3000) == BaselineMatch(sessions_ns=((5,), (5,)))


def test_a_case_that_is_not_stored_has_nothing() -> None:
    """A new case is neither comparable nor different."""
    assert matched("phase/a/b/copy") == BaselineMatch()


def test_another_fingerprint_has_differences() -> None:
    """Where no entry fits, the nearest one's differences are told."""
    assert matched(PREFILL, soc="B") == BaselineMatch(differences=("soc 'A', now 'B'",))
