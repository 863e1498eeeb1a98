"""How the cases of a run stand to what is stored, and slow creep away from the anchor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.verdict.changes import approve, case_changes, creep_ratio, find_creep, unknown_creep
from perfsuite.verdict.entry import BaselineEntry, StoredSession, first_entry

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


CASE, OTHER = "phase/a/b/decode", "phase/a/b/prefill"


def night(day: int, factor: float, memory_ns: int = 1000) -> StoredSession:
    """A session of two cases, the first of which takes a factor longer."""
    return StoredSession(
        recorded_at=f"2025-01-{day:02}",
        suite_version="1",
        samples_ns={CASE: (round(10**6 * factor),) * 3, OTHER: (10**6,) * 3},
        sentinels_ns={"memory": (memory_ns,)},
    )


def approved(n_approvals: int) -> BaselineEntry:
    """An entry whose reference was approved again and again, 3 % slower each time."""
    entry = first_entry({}, night(1, 1.0))
    for step in range(1, n_approvals + 1):
        new = night(1 + step, 1.03**step)
        changes = case_changes((entry,), new, weights={}, default_spread_ratio=0.15)
        entry = approve(entry, new, changes, reason="three percent more", approved_at=f"2025-01-{1 + step:02}")
    return entry


def test_five_small_approvals_are_one_large_change() -> None:
    (creep,) = find_creep(approved(5), (CASE, OTHER), margin_ratio=0.05, weights={})
    assert creep.text == f"creep: {CASE} +15.9 % since the anchor of 2025-01-01 (5 approvals)"
    assert find_creep(approved(1), (CASE, OTHER), margin_ratio=0.05, weights={}) == ()
    (creep,) = find_creep(approved(1), (CASE,), margin_ratio=0.02, weights={})
    assert creep.text.endswith("(1 approval)")


def test_creep_of_a_device_that_has_changed_is_not_known() -> None:
    entry = first_entry({}, night(1, 1.0))
    assert unknown_creep(entry, (CASE, OTHER), {"memory": 0.25}) is None
    moved = replace(entry, sessions=(night(2, 1.5, memory_ns=1),))
    assert find_creep(moved, (CASE,), margin_ratio=0.05, weights={"memory": 0.25}) == ()
    told = "creep of 1 case is not known: the device has changed since the anchor of 2025-01-01"
    assert unknown_creep(moved, (CASE, OTHER), {"memory": 0.25}) == told


def test_the_furthest_of_what_is_asked_for_comes_first() -> None:
    """Cases that were not measured are left out, and a pinned anchor starts anew."""
    assert find_creep(approved(5), (OTHER, "phase/a/b/copy"), margin_ratio=0.05, weights={}) == ()
    entry = approved(5)
    new = StoredSession(
        recorded_at="2025-02-01", suite_version="1", samples_ns={CASE: (1_100_000,), OTHER: (1_300_000,)}
    )
    found = find_creep(replace(entry, sessions=(new,)), (CASE, OTHER), margin_ratio=0.05, weights={})
    assert [each.case_id for each in found] == [OTHER, CASE]
    entry = approved(5).anchored(recorded_at="2025-01-20", reason="from here on")
    assert find_creep(entry, (CASE, OTHER), margin_ratio=0.001, weights={}) == ()
    slower = replace(entry, sessions=(night(21, 1.5),))
    (creep,) = find_creep(slower, (CASE,), margin_ratio=0.05, weights={})
    assert creep.n_approvals == 0


def test_a_machine_that_slowed_down_is_no_creep() -> None:
    entry = replace(first_entry({}, night(1, 1.0)), sessions=(night(2, 1.2, memory_ns=1200),))
    assert creep_ratio(entry, CASE, {"memory": 1.0}) == pytest.approx(1.0)
    assert creep_ratio(entry, CASE, {}) == pytest.approx(1.2)
