"""What it costs to follow a run, from pairs whose workers are replaced."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.experiments.overhead.measurement import (
    LiveCostRun,
    measure_live_cost,
    measure_overhead,
    overhead_ratios,
)
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import Hear
from perfsuite.measure.live import Delivery
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.live import LiveEnd, LiveToken
from perfsuite.testing.workers import replace_turns
from tests.synthetic_plans import CONTENDED, PLAN, QUIET

HERE = LocalBoard(cache_dir=Path("nowhere"))


class Workers:
    """Answers every pair from a stored record; the new side's worker sends a token."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = payload
        self.plans: list[LlamaPlan] = []
        self.contention = self.live_contention = QUIET
        self.is_silent = False

    def run(
        self, plans: tuple[TurnsPlan, TurnsPlan], *, hear: Hear, **_: object
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self.plans += [plan.llama for plan in plans]
        if not self.is_silent:
            self._offer(plans[1].llama, hear)
        old, new = (
            {**self.payload, "contention": contention} for contention in (self.contention, self.live_contention)
        )
        return old, new

    def _offer(self, plan: LlamaPlan, hear: Hear) -> None:
        assert plan.live_socket is not None
        token = LiveToken(repetition=0, step=0, token=0, latency_ns=1, end_ns=1, tokens_per_s=1.0)
        end = LiveEnd(end_ns=2, is_complete=True, n_phases=1, n_tokens=1, n_kernels=0)
        for each in (token, end):
            hear(Delivery(record=each, arrival_ns=2, delay_ns=1))


@pytest.fixture
def workers(stored_payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Workers:
    found = Workers(stored_payload)
    replace_turns(monkeypatch, found.run)
    return found


def measured(**settings: Any) -> LiveCostRun:
    """Measure the cost over five pairs, of a plan whose own socket counts for neither side."""
    plan, order = replace(PLAN, live_socket="/x/y"), random.Random(1)
    return measure_live_cost(plan, profile=find_profile("host"), board=HERE, n_pairs=5, order=order, **settings)


def test_one_side_of_each_pair_has_a_subscriber(workers: Workers, stored_record: EngineRecord) -> None:
    """The plain side has no socket, the other one has, and all that it sends is consumed."""
    seen: list[Delivery] = []
    found = measured(consume=seen.append)
    assert [plan.live_socket is None for plan in workers.plans] == [True, False] * 5
    assert "/x/y" not in [plan.live_socket for plan in workers.plans]
    assert found.n_tokens == 5
    assert len(seen) == 10
    ratios = found.overhead.ratios
    assert list(ratios) == [Phase.PREFILL, Phase.DECODE, Phase.END_TO_END]
    assert all(ratio.median_ratio == 1 and ratio.n_pairs == 5 for ratio in ratios.values())
    assert found.overhead.n_discarded == 0
    assert any(span.phase is Phase.DECODE for span in stored_record.spans)


def test_a_subscriber_that_received_nothing_measures_nothing(workers: Workers) -> None:
    workers.is_silent = True
    with pytest.raises(MeasurementError, match="received no token"):
        measured()


def test_competition_leaves_too_few_pairs(workers: Workers) -> None:
    workers.contention = CONTENDED
    with pytest.raises(MeasurementError, match=r"0 of 5 pairs had no competition, expected 5 or more \(threads waited"):
        measured()


def test_only_the_plain_side_tells_of_competition(workers: Workers) -> None:
    workers.live_contention = CONTENDED
    assert measured().overhead.n_discarded == 0


def record(**phases: list[list[int]]) -> EngineRecord:
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

    replace_turns(monkeypatch, run)
    environments, order = ({"A": "1"}, {"B": "2"}), random.Random(1)
    found = measure_overhead(
        (PLAN, PLAN), find_profile("host"), HERE, n_pairs=6, environments=environments, order=order
    )
    assert found.ratios[Phase.PREFILL].median_ratio == pytest.approx(1.02)
    assert seen == [("callback", "callback", pair % 2 ^ 1, ({"A": "1"}, {"B": "2"})) for pair in range(6)]


def test_a_decode_counts_whole_and_a_phase_that_was_not_run_costs_nothing() -> None:
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
    side = record(end_to_end=[[200]])
    assert list(overhead_ratios([(side, side)] * 5)) == [Phase.END_TO_END]
