"""The drift of the sentinels."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median, pstdev

import pytest

from perfsuite.records.events import Phase
from perfsuite.verdict.drift import (
    COMPUTE,
    MIN_SESSIONS,
    NATIVE_ITL,
    NATIVE_TOKENS_PER_S,
    NATIVE_TTFT,
    Drift,
    drift_between,
    fitted_weights,
    from_anchor_ratio,
    sentinel_of,
    suspicion,
)
from perfsuite.verdict.entry import Anchor, BaselineEntry, StoredSession, first_entry
from perfsuite.verdict.match import match_entry

CASES = tuple(f"operator/m/siso/decode/{role}" for role in ("ffn_up", "ffn_out", "attn_out"))
PREFILL_CASE = "phase/m/siso/prefill"


def _entry(n_sessions: int, *, weight: float, spread: float, noise: float, seed: int = 1) -> BaselineEntry:
    """Draw sessions: a machine whose memory's speed spreads, cases that follow it so far, and noise of their own."""
    order = random.Random(seed)
    sessions = []
    for place in range(n_sessions):
        slowness = order.lognormvariate(0.0, spread)
        cases = {case: round(1e6 * slowness**weight * order.lognormvariate(0.0, noise)) for case in CASES}
        sessions.append(
            StoredSession(
                recorded_at=f"2026-01-{place + 1:02}",
                suite_version="1",
                samples_ns={name: (time_ns,) * 3 for name, time_ns in {**cases, PREFILL_CASE: 10**7}.items()},
                sentinels_ns={"memory": (round(1e6 * slowness),), "compute": (round(1e6 * slowness),)},
            )
        )
    entry = first_entry({"soc": "A"}, sessions[0])
    for session in sessions[1:]:
        entry = entry.with_session(session)
    return entry


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_a_weight_that_the_sessions_show_is_found(weight: float) -> None:
    found = fitted_weights(_entry(15, weight=weight, spread=0.1, noise=0.01), {"memory": 0.2, "compute": 0.9})
    assert found["memory"] == pytest.approx(weight, abs=0.1)


def test_a_sentinel_that_nothing_follows_corrects_nothing() -> None:
    """In most drawn devices whose cases do not follow it the weight is 0, and in none more than a fifth."""
    found = [fitted_weights(_entry(10, weight=0.0, spread=0.1, noise=0.05, seed=seed), {}) for seed in range(40)]
    weights = [each["memory"] for each in found]
    assert weights.count(0.0) > 20
    assert max(map(abs, weights)) < 0.5
    assert {each["compute"] for each in found} == {0.0}


def test_few_sessions_leave_the_stated_weights() -> None:
    """With too few sessions the profile's weights count; fitted ones lessen the spread between sessions."""
    stated = {"memory": 0.25, "compute": 1.0}
    assert fitted_weights(_entry(MIN_SESSIONS - 1, weight=1.0, spread=0.1, noise=0.01), stated) == stated
    entry = _entry(12, weight=1.0, spread=0.1, noise=0.01)

    def spread(weights: dict[str, float]) -> float:
        sessions = match_entry(entry, CASES[0], sentinels_ns={"memory": (10**6,)}, weights=weights).sessions_ns
        middles = [median(samples) for samples in sessions]
        return pstdev(middles) / (sum(middles) / len(middles))

    assert spread(fitted_weights(entry, {})) < 0.3 * spread({})


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


BINDING = "binding/m-q8_0/siso"


@pytest.mark.parametrize(
    ("case_id", "sentinel"),
    [
        *((f"phase/a/b/{name}", "memory") for name in ("load", "copy", "decode")),
        *((f"phase/a/b/{name}", "compute") for name in ("prefill", "softmax", "sampling")),
        *((f"operator/a/b/decode/{role}", "memory") for role in ("ffn_up", "rest")),
        (PREFILL, "compute"),
        ("kernel/add/n8/f32", "compute"),
        ("kernel/smollm2-135m-q8_0/siso/decode/kernel_add", "memory"),
        ("kernel/smollm2-135m-q8_0/siso/prefill/kernel_add", "compute"),
        *((case_id, None) for case_id in ("mine/x", "phase/a", "phase/a/b/other", f"{BINDING}/load")),
        (f"{BINDING}/calls/ttft", NATIVE_TTFT),
        (f"{BINDING}/completion/tokens_per_s", NATIVE_TOKENS_PER_S),
        (f"{BINDING}/completion/itl-p99", NATIVE_ITL),
        (f"{BINDING}/calls/ttft/decode", NATIVE_TTFT),
        (f"{BINDING}/calls/itl/decode", NATIVE_ITL),
        (f"{BINDING}/completion/itl/sampling", COMPUTE),
        (f"{BINDING}/completion/ttft/python", COMPUTE),
    ],
)
def test_a_case_follows_what_bounds_it(case_id: str, sentinel: str | None) -> None:
    """Decode waits for memory, prefill and kernels for arithmetic; of other cases nothing is known.

    What the binding does itself does not follow the engine: a faster engine would else be a slower sampling.
    """
    assert sentinel_of(case_id) == sentinel
    assert all(sentinel_of(f"phase/a/b/{phase.value}") for phase in Phase)


@pytest.mark.parametrize(
    ("case_id", "new", "weights", "sentinel", "ratio", "correction_ratio"),
    [
        (DECODE, {"memory": (1440,) * 3}, WEIGHTS, "memory", 1.44, 1.2),
        (DECODE, {"memory": (1440,)}, {}, "memory", 1.44, 1.0),
        ("binding/m/s/calls/itl", {NATIVE_ITL: (1500,)}, {}, NATIVE_ITL, 1.5, 1.5),
    ],
)
def test_a_drift_is_followed_by_its_weight(
    case_id: str,
    new: dict[str, tuple[int, ...]],
    weights: dict[str, float],
    sentinel: str,
    ratio: float,
    correction_ratio: float,
) -> None:
    """What is not known to follow it is corrected by nothing, and the binding by all of the native driver's."""
    old = replace(session(), sentinels_ns={"memory": (1000,), NATIVE_ITL: (1000,)})
    drift = drift_between(case_id, old, new, weights)
    assert drift is not None
    assert (drift.sentinel, drift.ratio, drift.correction_ratio) == (sentinel, ratio, pytest.approx(correction_ratio))


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
    assert drift_between(case_id, old, new, WEIGHTS) is None


def test_a_correction_is_reported_where_it_matters() -> None:
    """More than one percent has words; a session stands to the anchor less the drift since then."""
    assert Drift(sentinel="compute", ratio=1.009, weight_ratio=1.0).text == ""
    assert Drift(sentinel="memory", ratio=1.03, weight_ratio=0.25).text == ""
    text = Drift(sentinel="compute", ratio=1.031, weight_ratio=1.0).text
    assert text == "after dividing out a drift of +3.1 % of the compute sentinel"
    text = Drift(sentinel="memory", ratio=0.81, weight_ratio=0.5).text
    assert text == "after dividing out -10.0 % for a drift of -19.0 % of the memory sentinel"
    anchor = Anchor(recorded_at="0", reason="why", cases_ns={DECODE: 100}, sentinels_ns={"memory": 800})
    assert from_anchor_ratio(DECODE, anchor, session(memory_ns=1000), WEIGHTS) == pytest.approx(2.0 / 1.25**0.5)
    assert from_anchor_ratio(DECODE, anchor, session(memory_ns=1), WEIGHTS) is None
    assert from_anchor_ratio(DECODE, anchor, session(memory_ns=None), WEIGHTS) == pytest.approx(2.0)
    assert from_anchor_ratio(PREFILL, anchor, session(), WEIGHTS) is None
    other = Anchor(recorded_at="0", reason="why", cases_ns={"phase/other/b/decode": 100}, sentinels_ns={})
    assert from_anchor_ratio("phase/other/b/decode", other, session(), WEIGHTS) is None


def test_a_machine_that_is_not_as_it_was_is_reported() -> None:
    stored = [session(compute_ns=1000), session(compute_ns=None)]
    assert suspicion(stored, {"compute": (1090,)}) is None
    assert suspicion(stored, {}) is None
    assert suspicion([], {"compute": (1,)}) is None
    reported = suspicion(stored, {"compute": (1250,)})
    assert reported == "the compute sentinel is +25.0 % off the stored sessions; look at clock and temperature"


@pytest.mark.parametrize(
    ("sentinel", "ratio", "weight", "is_beyond"),
    [
        *((name, ratio, 1.0, True) for name in ("memory", "compute") for ratio in (1.31, 0.76, 0.0, 1e-6, 1e6)),
        *((name, ratio, 0.25, False) for name in ("memory", "compute") for ratio in (1.3, 0.77, 1.0)),
        ("memory", 1.31, 0.25, True),
        ("memory", 9.0, 0.0, False),
        (NATIVE_ITL, 9.0, 1.0, False),
    ],
)
def test_no_more_than_30_percent_is_divided_out(sentinel: str, ratio: float, weight: float, is_beyond: bool) -> None:
    """Beyond it, either way, the device has changed; what nothing follows, and the engine's own time, may be any."""
    drift = Drift(sentinel=sentinel, ratio=ratio, weight_ratio=weight)
    assert drift.is_beyond is is_beyond
    assert ("the device has changed" in drift.text) is is_beyond
