"""What is stored of each case, summed up."""

from __future__ import annotations

import pytest

from perfsuite.verdict.entry import StoredSession, first_entry
from perfsuite.verdict.summary import case_summaries


def test_a_case_is_summed_up() -> None:
    """Each case has its sessions, reference, spreads and anchor; what one session cannot show is None."""
    first = StoredSession(recorded_at="1", suite_version="1", samples_ns={"x/a": (100, 100), "x/b": (7,)})
    second = StoredSession(recorded_at="2", suite_version="1", samples_ns={"x/a": (110, 110)})
    a, b = case_summaries(first_entry({}, first).with_session(second), {})
    assert (a.case_id, a.n_sessions, a.median_ns, a.anchor_ns) == ("x/a", 2, 105, 100)
    assert a.within_ratio == 0.0
    assert a.between_ratio == pytest.approx(0.0697, abs=0.0001)
    assert a.since_anchor_ratio == pytest.approx(1.05)
    assert (b.n_sessions, b.median_ns, b.within_ratio, b.between_ratio) == (1, 7, None, None)
