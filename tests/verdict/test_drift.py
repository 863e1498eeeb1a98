"""The drift of the sentinels."""

from __future__ import annotations

import pytest

from perfsuite.records.events import Phase
from perfsuite.verdict.drift import Drift, drift_between, from_anchor_ratio, sentinel_of, suspicion
from perfsuite.verdict.entry import Anchor, StoredSession

DECODE, PREFILL = "phase/a/b/decode", "operator/a/b/prefill/ffn_up"
WEIGHTS = {"memory": 0.5, "compute": 1.0}


def session(memory_ns: int | None = 1000, compute_ns: int | None = 1000) -> StoredSession:
    """A session with a sample of each case, and the sentinels that it has."""
    given = {"memory": memory_ns, "compute": compute_ns}
    return StoredSession(
        recorded_at="1",
        suite_version="1",
        samples_ns={DECODE: (200,), PREFILL: (200,), "mine/x": (200,)},
        sentinels_ns={name: (value,) * 3 for name, value in given.items() if value is not None},
    )


@pytest.mark.parametrize(
    ("case_id", "sentinel"),
    [
        (DECODE, "memory"),
        ("operator/a/b/decode/ffn_up", "memory"),
        ("operator/a/b/decode/rest", "memory"),
        ("phase/a/b/load", "memory"),
        ("phase/a/b/copy", "memory"),
        ("phase/a/b/prefill", "compute"),
        (PREFILL, "compute"),
        ("phase/a/b/softmax", "compute"),
        ("phase/a/b/sampling", "compute"),
        ("kernel/add/n8/f32", "compute"),
        ("kernel/smollm2-135m-q8_0/siso/decode/kernel_add", "memory"),
        ("kernel/smollm2-135m-q8_0/siso/prefill/kernel_add", "compute"),
        ("mine/x", None),
        ("phase/a", None),
        ("phase/a/b/other", None),
    ],
)
def test_a_case_follows_what_bounds_it(case_id: str, sentinel: str | None) -> None:
    """Decode waits for memory, prefill and kernels for arithmetic; of other cases nothing is known."""
    assert sentinel_of(case_id) == sentinel


def test_every_phase_has_a_sentinel() -> None:
    """No phase is forgotten."""
    assert all(sentinel_of(f"phase/a/b/{phase.value}") for phase in Phase)


def test_a_drift_is_followed_by_its_weight() -> None:
    """A case is corrected by the drift to the power of its sentinel's weight."""
    drift = drift_between(DECODE, session(memory_ns=1000), {"memory": (1440,) * 3}, WEIGHTS)
    assert drift is not None
    assert (drift.sentinel, drift.ratio, drift.correction_ratio) == ("memory", 1.44, pytest.approx(1.2))
    unknown = drift_between(DECODE, session(), {"memory": (1440,)}, {})
    assert unknown is not None
    assert unknown.correction_ratio == 1.0


@pytest.mark.parametrize(
    ("case_id", "old", "new"),
    [
        ("mine/x", session(), {"memory": (1,), "compute": (1,)}),
        (DECODE, session(memory_ns=None), {"memory": (1,)}),
        (DECODE, session(), {"compute": (1,)}),
        (DECODE, session(), {"memory": ()}),
    ],
)
def test_without_a_sentinel_there_is_no_drift(
    case_id: str, old: StoredSession, new: dict[str, tuple[int, ...]]
) -> None:
    """A case that follows none, and a side that did not measure it, leave samples as they are."""
    assert drift_between(case_id, old, new, WEIGHTS) is None


def test_a_correction_is_told_where_it_matters() -> None:
    """More than one percent has words, with the part that is followed where that is not all."""
    assert Drift(sentinel="compute", ratio=1.009, weight_ratio=1.0).text == ""
    assert Drift(sentinel="memory", ratio=1.03, weight_ratio=0.25).text == ""
    text = Drift(sentinel="compute", ratio=1.031, weight_ratio=1.0).text
    assert text == "after dividing out a drift of +3.1 % of the compute sentinel"
    text = Drift(sentinel="memory", ratio=0.81, weight_ratio=0.5).text
    assert text == "after dividing out -10.0 % for a drift of -19.0 % of the memory sentinel"


def test_the_anchor_drifts_too() -> None:
    """A session stands to the anchor less the drift since the anchor; a case that either lacks has no ratio."""
    anchor = Anchor(recorded_at="0", reason="why", cases_ns={DECODE: 100}, sentinels_ns={"memory": 250})
    assert from_anchor_ratio(DECODE, anchor, session(memory_ns=1000), WEIGHTS) == pytest.approx(1.0)
    assert from_anchor_ratio(DECODE, anchor, session(memory_ns=None), WEIGHTS) == pytest.approx(2.0)
    assert from_anchor_ratio(PREFILL, anchor, session(), WEIGHTS) is None
    other = Anchor(recorded_at="0", reason="why", cases_ns={"phase/other/b/decode": 100}, sentinels_ns={})
    assert from_anchor_ratio("phase/other/b/decode", other, session(), WEIGHTS) is None


def test_a_machine_that_is_not_as_it_was_is_told() -> None:
    """Arithmetic that is more than a tenth off what is stored is worth a line, whatever the verdicts."""
    stored = [session(compute_ns=1000), session(compute_ns=None)]
    assert suspicion(stored, {"compute": (1090,)}) is None
    assert suspicion(stored, {}) is None
    assert suspicion([], {"compute": (1,)}) is None
    told = suspicion(stored, {"compute": (1250,)})
    assert told == "the compute sentinel is +25.0 % off the stored sessions; look at clock and temperature"
