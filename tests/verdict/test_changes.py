"""How the cases of a run stand to what is stored."""

from __future__ import annotations

import pytest

from perfsuite.verdict.changes import case_changes
from perfsuite.verdict.entry import StoredSession, first_entry

PREFILL, NEW = "phase/a/b/prefill", "phase/a/b/decode"


def session(samples: dict[str, tuple[int, ...]], compute_ns: int = 1000) -> StoredSession:
    return StoredSession(
        recorded_at="1", suite_version="1", samples_ns=samples, sentinels_ns={"compute": (compute_ns,)}
    )


def test_medians_are_as_measured_and_ratios_without_drift() -> None:
    entry = first_entry({}, session({PREFILL: (1000,) * 3}))
    run = session({NEW: (7,), PREFILL: (1320,) * 3}, compute_ns=1200)
    new, found = case_changes((entry,), run, weights={"compute": 1.0}, default_spread_ratio=0.02)
    assert (found.case_id, found.old_ns, found.new_ns) == (PREFILL, 1000, 1320)
    assert (found.ratio, found.anchor_ratio) == pytest.approx((1.1, 1.1))
    assert found.change is not None
    assert found.change.lower_ratio == pytest.approx(1.1 / 1.02)
    assert new.old_ns is new.ratio is new.anchor_ratio is None


@pytest.mark.parametrize(("factor", "is_beyond"), [(0.5, False), (1.0, False), (1.049, False), (1.051, True)])
def test_beyond_the_margin_is_slower(factor: float, is_beyond: bool) -> None:
    entry = first_entry({}, session({PREFILL: (10**6,)}))
    run = session({PREFILL: (round(10**6 * factor),), NEW: (1,)})
    found, new = case_changes((entry,), run, weights={}, default_spread_ratio=0.15)
    assert found.is_beyond(0.05) is is_beyond
    assert not new.is_beyond(0.05)
