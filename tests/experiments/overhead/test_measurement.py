"""What it costs to follow a run, from pairs whose workers are replaced."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.experiments.overhead.measurement import Side, measure_overhead, overhead_ratios
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.plan import TurnsPlan
from perfsuite.records.events import EngineRecord, Phase, Span
from tests.synthetic_plans import PLAN, QUIET

BOARD = LocalBoard(cache_dir=Path("nowhere"))


def record(**phases: list[list[int]]) -> EngineRecord:
    """Return a record with the latencies of each phase, repetition by repetition."""
    return EngineRecord(
        engine_version="x",
        spans=tuple(
            Span(phase=Phase(name), repetition=repetition, token=0, n_tokens=1, start_ns=0, end_ns=latency_ns)
            for name, repetitions in phases.items()
            for repetition, latencies_ns in enumerate(repetitions)
            for latency_ns in latencies_ns
        ),
        graphs=(),
        n_dropped=0,
    )


def test_each_side_has_its_own_plan_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides run in every pair, each as it was given, and lead in turn."""
    seen: list[tuple[str, str, int, Any]] = []

    def run(plans: tuple[TurnsPlan, TurnsPlan], *, leader: int, own_environments: Any, **_: object) -> Any:
        seen.append((plans[0].llama.recorder, plans[1].llama.recorder, leader, own_environments))
        old, new = record(prefill=[[100]] * 4), record(prefill=[[102]] * 4)
        return tuple({"engine": each.to_plain(), "contention": QUIET} for each in (old, new))

    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", run)
    plain, recorded = Side(plan=PLAN, environment={"A": "1"}), Side(plan=PLAN, environment={"B": "2"})
    found = measure_overhead(plain, recorded, find_profile("host"), BOARD, n_pairs=6, order=random.Random(1))
    assert found.ratios[Phase.PREFILL].median_ratio == pytest.approx(1.02)
    assert seen == [("callback", "callback", pair % 2 ^ 1, ({"A": "1"}, {"B": "2"})) for pair in range(6)]


def test_too_few_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where fewer pairs than a bound needs were asked for, there is no figure."""
    payload = {"engine": record(prefill=[[100]]).to_plain(), "contention": QUIET}
    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", lambda *_, **__: (payload, payload))
    with pytest.raises(MeasurementError, match="4 of 4 pairs had no competition, expected 5"):
        measure_overhead(Side(plan=PLAN), Side(plan=PLAN), find_profile("host"), BOARD, n_pairs=4)


def test_a_decode_counts_whole() -> None:
    """The steps of a repetition are summed, so that one slow step of four counts; repetitions give their median."""
    old = record(decode=[[10] * 4] * 3, prefill=[[100]] * 3, end_to_end=[[200]] * 3)
    new = record(
        decode=[[10, 10, 10, 14], [10, 10, 10, 14], [90] * 4], prefill=[[100], [101], [300]], end_to_end=[[210]] * 3
    )
    costs = overhead_ratios([(old, new)] * 6)
    assert costs[Phase.DECODE].median_ratio == pytest.approx(1.1)
    assert costs[Phase.PREFILL].median_ratio == pytest.approx(1.01)
    assert costs[Phase.END_TO_END].median_ratio == pytest.approx(1.05)
    assert costs[Phase.END_TO_END].n_pairs == 6


def test_a_phase_that_was_not_run_has_no_cost() -> None:
    """Without a prompt there is no prefill, without a generation no decode."""
    side = record(end_to_end=[[200]])
    assert list(overhead_ratios([(side, side)] * 5)) == [Phase.END_TO_END]
