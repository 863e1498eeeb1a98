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


def matched(
    case_id: str, compute_ns: int | None = None, soc: str = "A", board: str | None = None, stored: BaselineFile = STORED
) -> BaselineMatch:
    sentinels = {"compute": (compute_ns,)} if compute_ns else {}
    return match_case(stored, {"soc": soc}, case_id, sentinels_ns=sentinels, weights={"compute": 1.0}, board=board)


def of_boards(**times_ns: int) -> BaselineFile:
    stored = BaselineFile(path=Path("x.json"))
    for board, time_ns in times_ns.items():
        session = StoredSession(recorded_at=board, suite_version="1", samples_ns={PREFILL: (time_ns,)})
        stored = stored.with_session({"soc": "A"}, session, board)
    return stored


def test_samples_come_by_session_less_their_drift() -> None:
    """Each session has its own drift, and none that is beyond what is divided out; a case of your own has none."""
    assert matched(PREFILL) == BaselineMatch(sessions_ns=((1000, 1010), (2000, 2010)))
    assert matched(PREFILL).reference_ns == 1505
    found = matched(PREFILL, 1250)
    assert found.sessions_ns == (pytest.approx((1250, 1262.5)),)
    assert (found.correction, found.problem) == ("after dividing out a drift of +25.0 % of the compute sentinel", "")
    found = matched(PREFILL, 3000)
    assert (found.sessions_ns, found.correction) == ((), "")
    assert found.problem == (
        "the device has changed: the compute sentinel moved by +50.0 % since it was stored, and no more than 30 % is "
        "divided out"
    )
    assert matched("mine/x", 3000) == BaselineMatch(sessions_ns=((5,), (5,)))


def test_a_case_that_is_not_stored_has_nothing() -> None:
    assert matched("phase/a/b/copy") == BaselineMatch()
    assert matched(PREFILL, soc="B") == BaselineMatch(differences=("soc 'A', now 'B'",))


def test_what_was_asked_for_chooses_the_entry() -> None:
    """Where nothing was stored with the settings of a run its cases are new, whatever the machine is."""
    session = StoredSession(recorded_at="now", suite_version="1", samples_ns={PREFILL: (1000,)})
    stored = BaselineFile(path=Path("x.json")).with_session({"soc": "A", "backend": "cpu", "threads": "2"}, session)

    def asked(**fields: str) -> BaselineMatch:
        fingerprint = {"soc": "A", "backend": "cpu", "threads": "2", **fields}
        return match_case(stored, fingerprint, PREFILL, sentinels_ns={}, weights={})

    assert asked().sessions_ns == ((1000,),)
    opencl = {"backend": "opencl", "opencl_platform": "P, OpenCL 3.0", "opencl_device": "D"}
    assert asked(**opencl) == BaselineMatch(absence="no baseline with backend opencl yet")
    assert asked(threads="4", soc="B") == BaselineMatch(absence="no baseline with threads 4 yet")
    assert asked(soc="B").differences == ("soc 'A', now 'B'",)


def test_another_engine_is_compared_and_named() -> None:
    """The newest of the stored sessions says from which engine a case comes; nothing is said where none is known."""
    stored = BaselineFile(path=Path("x.json"))
    for engine in ("b1", "b2"):
        session = StoredSession(recorded_at="now", suite_version="1", samples_ns={PREFILL: (1,)}, engine_version=engine)
        stored = stored.with_session({"soc": "A"}, session)

    def engines(**fields: str) -> str:
        return match_case(stored, {"soc": "A", **fields}, PREFILL, sentinels_ns={}, weights={}).engines

    assert engines(engine="b3") == "engine b2 -> b3"
    assert engines(engine="b2") == engines() == matched(PREFILL).engines == ""


def test_a_board_is_compared_with_itself() -> None:
    """Other boards' sessions do not count; how many have some is said, also to a run on the machine."""
    stored = of_boards(slow=1080, fast=1000)
    assert matched(PREFILL, board="slow", stored=stored).sessions_ns == ((1080,),)
    assert matched(PREFILL, board="fast", stored=stored).sessions_ns == ((1000,),)
    new = "no baseline of this board yet, though 2 other boards of its kind have one"
    assert matched(PREFILL, board="third", stored=stored) == BaselineMatch(absence=new)
    own = "no baseline of runs on the machine itself yet, though 2 boards of its kind have one over a link"
    assert matched(PREFILL, stored=stored) == BaselineMatch(absence=own)
    assert matched("phase/a/b/copy", board="third", stored=stored) == BaselineMatch()


def test_sessions_without_a_board_count_until_a_board_has_its_own() -> None:
    """Older records give way to the board's own, case by case; another state of it is incomparable."""
    assert matched(PREFILL, board="fast") == matched(PREFILL)
    own = StoredSession(recorded_at="own", suite_version="1", samples_ns={PREFILL: (7,)})
    stored = STORED.with_session({"soc": "A"}, own, "fast")
    assert matched(PREFILL, board="fast", stored=stored).sessions_ns == ((7,),)
    assert matched("mine/x", board="fast", stored=stored).sessions_ns == ((5,), (5,))
    assert matched(PREFILL, stored=stored) == matched(PREFILL)
    stored = of_boards(fast=1000)
    old = StoredSession(recorded_at="old", suite_version="1", samples_ns={PREFILL: (1080,)})
    stored = stored.with_session({"soc": "B"}, old, "slow")
    assert matched(PREFILL, board="slow", stored=stored) == BaselineMatch(differences=("soc 'B', now 'A'",))
    assert matched(PREFILL, soc="C", board="slow", stored=stored).differences == ("soc 'B', now 'C'",)
