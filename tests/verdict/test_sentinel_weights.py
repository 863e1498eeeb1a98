"""Weights of sentinels, fitted to drawn sessions whose truth is known."""

from __future__ import annotations

import random
from statistics import median, pstdev

import pytest

from perfsuite.verdict.entry import BaselineEntry, StoredSession, first_entry
from perfsuite.verdict.match import match_entry
from perfsuite.verdict.sentinel_weights import MIN_SESSIONS, fitted_weights

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
    """Shrunk a little, and not beyond the truth by much."""
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
    """Until there are enough, the profile's count."""
    stated = {"memory": 0.25, "compute": 1.0}
    assert fitted_weights(_entry(MIN_SESSIONS - 1, weight=1.0, spread=0.1, noise=0.01), stated) == stated


def test_stored_sessions_become_steadier_by_fitted_weights() -> None:
    """The spread of a case between sessions, as a new one is compared with them, falls where its sentinel drifts."""
    entry = _entry(12, weight=1.0, spread=0.1, noise=0.01)

    def spread(weights: dict[str, float]) -> float:
        sessions = match_entry(entry, CASES[0], sentinels_ns={"memory": (10**6,)}, weights=weights).sessions_ns
        middles = [median(samples) for samples in sessions]
        return pstdev(middles) / (sum(middles) / len(middles))

    assert spread(fitted_weights(entry, {})) < 0.3 * spread({})
