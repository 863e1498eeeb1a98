"""What the eBPF recorder costs, from made-up turns and from real ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.experiments.overhead.ebpf_cost import measure_ebpf_cost
from perfsuite.experiments.overhead.recorder_sides import EBPF_LEVELS, EBPF_RECORDERS, ebpf_plan
from perfsuite.experiments.recorder_traces import RecorderTrace
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import find_engine
from perfsuite.measure.plan import EbpfOverheadPlan, LlamaPlan
from perfsuite.records.engine_trace import EventKind, ProbeCost
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.testing.engine_traces import engine_trace, event
from perfsuite.workload.weights import materialize, resolve

_QUIET = {"wall_ns": 1, "running_ns": 3, "waiting_ns": 1, "steal_ratio": None, "others_ratio": None}


@pytest.fixture
def plan(tmp_path_factory: pytest.TempPathFactory) -> LlamaPlan:
    folder, engine = tmp_path_factory.mktemp("models"), find_engine()
    return LlamaPlan(
        gguf_path=str(materialize(resolve("smollm2-135m-l2-q8_0", cache_dir=folder), cache_dir=folder)),
        library_dir=str(engine.library_dir),
        engine_build_id=engine.build_id,
        cache_dir=str(tmp_path_factory.getbasetemp() / "engine-cache"),
        n_threads=2,
        n_prompt=8,
        n_gen=4,
        recorder="none",
    )


def _span(phase: Phase, start_ns: int) -> Span:
    return Span(phase=phase, repetition=0, token=0, n_tokens=1, start_ns=start_ns, end_ns=start_ns + 1_000_000)


def test_a_hit_is_the_added_time_over_one_threads_hits(
    plan: LlamaPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two threads hit side by side: 100 hits a step are 50 of each, and 4 steps took 0.4 ms longer."""
    asked: list[EbpfOverheadPlan] = []

    def worker(given: EbpfOverheadPlan, **_: object) -> dict[str, Any]:
        asked.append(given)
        pairs = ([10_000_000] * given.n_pairs, [10_400_000] * given.n_pairs)
        return {"sums_ns": {"prefill": pairs, "decode": pairs}, "contention": _QUIET}

    def traced(given: LlamaPlan, ebpf: Any, _: object, folder: Path) -> RecorderTrace:
        assert ebpf.statistics
        assert folder.is_dir()
        spans = [_span(Phase.PREFILL, 0), *(_span(Phase.DECODE, at * 1_000_000) for at in range(1, 5))]
        record = EngineRecord(engine_version="", spans=tuple(spans), graphs=(), n_dropped=0)
        costs = (
            ProbeCost(name="operator", n_runs=400, run_time_ns=20_000),
            ProbeCost(name="end", n_runs=100, run_time_ns=5_000),
        )
        trace = engine_trace([event(EventKind.TOKEN, 0, 10)], probe_costs=costs, n_lost=3)
        return RecorderTrace(payload={"engine": record.to_plain()}, trace=trace)

    monkeypatch.setattr("perfsuite.measure.launch.run_worker", worker)
    monkeypatch.setattr("perfsuite.experiments.overhead.ebpf_cost.traced_by_ebpf", traced)
    monkeypatch.setattr("perfsuite.measure.board.local_board.usable_threads", lambda: 2)
    board = LocalBoard(cache_dir=tmp_path)
    cost = measure_ebpf_cost("ebpf-operator", plan, tmp_path / "helper", board, n_pairs=20)
    assert asked[0].llama.ebpf is not None
    assert (asked[0].llama.ebpf.levels, asked[0].llama.n_repetitions) == (int(EBPF_LEVELS["ebpf-operator"]), 1)
    assert cost.ratios[Phase.DECODE].median_ratio == pytest.approx(1.04)
    assert cost.hits_per_step == 100.0
    assert cost.ns_per_hit == pytest.approx(100_000 / 50)
    assert cost.load_ratio == pytest.approx(25_000 / (5_000_000 * 2))
    assert (cost.waiting_ratio, cost.n_lost) == (0.25, 3)


@pytest.mark.measures
@pytest.mark.parametrize("name", ["ebpf-token", "ebpf-structure+perf"])
def test_real_turns_are_compared(plan: LlamaPlan, requires_ebpf: Path, tmp_path: Path, name: str) -> None:
    cost = measure_ebpf_cost(name, plan, requires_ebpf, LocalBoard(cache_dir=tmp_path), n_pairs=6)
    assert set(cost.ratios) == {Phase.PREFILL, Phase.DECODE}
    assert all(ratio.n_pairs == 6 for ratio in cost.ratios.values())
    assert cost.n_lost == 0
    assert cost.hits_per_step == 2.0 if name == "ebpf-token" else cost.hits_per_step > 20.0


def test_names_say_levels_and_buffer() -> None:
    plans = {name: ebpf_plan(name, Path("helper"), Path("log")) for name in EBPF_RECORDERS}
    assert len(plans) == 2 * len(EBPF_LEVELS)
    assert plans["ebpf-all+perf"] == replace(plans["ebpf-all"], buffer="perf")
    assert plans["ebpf-token"].buffer == "ring"
