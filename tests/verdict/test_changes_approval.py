"""Making a run the new reference."""

from __future__ import annotations

import pytest

from perfsuite.errors import BaselineError
from perfsuite.verdict.changes import CaseChange, approval_text, approve, case_changes, checked_reason, notable
from perfsuite.verdict.entry import BaselineEntry, StoredSession, first_entry

A, B, C = "phase/a/b/decode", "phase/a/b/prefill", "phase/a/b/copy"


def session(recorded_at: str, **times: int) -> StoredSession:
    named = {"a": A, "b": B, "c": C}
    samples = {named[name]: (time_ns,) * 3 for name, time_ns in times.items()}
    return StoredSession(recorded_at=recorded_at, suite_version="1", samples_ns=samples)


OLD = first_entry({"soc": "A"}, session("1", a=10**6, b=10**6)).with_session(session("2", a=10**6, b=10**6))
NEW = session("3", a=1_100_000, c=5000)


def changes_of(entry: BaselineEntry, new: StoredSession) -> tuple[CaseChange, ...]:
    return case_changes((entry,), new, weights={}, default_spread_ratio=0.15)


def test_the_run_replaces_the_sessions_of_its_cases() -> None:
    """The run is the only session of its cases, once; others keep theirs, and the anchor does not move."""
    found = approve(OLD, NEW, changes_of(OLD, NEW), reason="a good reason", approved_at="4")
    assert [each.recorded_at for each in found.sessions_of(A)] == ["3"]
    assert [each.recorded_at for each in found.sessions_of(B)] == ["1", "2"]
    assert found.anchor.cases_ns == {A: 10**6, B: 10**6, C: 5000}
    (approval,) = found.approvals
    assert (approval.approved_at, approval.reason) == ("4", "a good reason")
    assert (approval.change_ratio, approval.retired_ns) == ({A: pytest.approx(1.1)}, {A: 10**6})
    found = approve(OLD, NEW, (), reason="a good reason", approved_at="4")
    with pytest.raises(BaselineError, match="the run of 3 is the reference already"):
        approve(found, NEW, (), reason="a good reason", approved_at="5")


def test_the_text_shows_what_changed() -> None:
    """When, why, on what, and a row for each case that changed or is new; the rest is counted."""
    new = session("3", a=1_100_000, b=1_004_000, c=5000)
    text = approval_text(OLD, changes_of(OLD, new), reason="a good reason", approved_at="4", recorded_at="3")
    assert text.splitlines()[0] == "## 4: a good reason"
    assert "The run of 3 on soc A." in text
    assert f"| `{A}` | 1.00 ms | 1.10 ms | +10.0 % | +10.0 % |" in text
    assert f"| `{C}` | - | 5.00 µs | - | - |" in text
    assert B not in text
    assert text.endswith("1 more case changed by 0.5 % or less.\n")
    changes = changes_of(OLD, session("3", a=10**6))
    assert notable(changes) == ()
    text = approval_text(OLD, changes, reason="a good reason", approved_at="4", recorded_at="3")
    assert "|" not in text


def test_a_reason_is_one_line() -> None:
    """Line breaks and double spaces go; what remains must say something."""
    assert checked_reason("  a reason\n of  two lines ") == "a reason of two lines"
    with pytest.raises(BaselineError, match=r"^--reason='too short': has 9 characters, expected 10 or more; "):
        checked_reason("too  short")
