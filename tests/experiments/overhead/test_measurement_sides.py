"""Which two sides a comparison of recorders has, and what the eBPF recorder costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perfsuite.device.machine import Machine
from perfsuite.device.profile import Profile, find_profile
from perfsuite.experiments.overhead.ebpf_cost import measure_ebpf_cost
from perfsuite.experiments.overhead.measurement import (
    CPU_COMPARISONS,
    EBPF_LEVELS,
    OPENCL_COMPARISONS,
    Overhead,
    compare_recorders,
)
from perfsuite.experiments.recorder_traces import RecorderTrace
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.engine import find_engine
from perfsuite.measure.live import LIVE_SOCKET
from perfsuite.measure.plan import EbpfOverheadPlan, LlamaPlan
from perfsuite.records.engine_trace import EventKind, ProbeCost
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.testing.engine_traces import engine_trace, event
from perfsuite.testing.workers import replace_workers
from perfsuite.workload.weights import materialize, resolve
from tests.synthetic_opencl_backend import opencl_backend, opencl_plan

MODE, LOG = "PERFSUITE_OPENCL_LAYER_MODE", "PERFSUITE_OPENCL_LOG"
HOST, BOARD = find_profile("host"), LocalBoard(cache_dir=Path("nowhere"))
OVERHEAD = Overhead(ratios={}, n_discarded=0)


class Side(NamedTuple):
    plan: LlamaPlan
    environment: Mapping[str, str]


@dataclass
class Measured:
    """Takes the sides that are compared, and the sockets that were subscribed to, meanwhile or ever."""

    sides: list[tuple[Side, Side]] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None

    def measure(self, plans: Any, *where: Profile | Board, environments: Any, **asked: Any) -> Overhead:
        assert where == (HOST, BOARD)
        plain, recorded = map(Side, plans, environments)
        self.sides.append((plain, recorded))
        self.asked = asked
        assert (asked["hear"] is not None) == (recorded.plan.live_socket is not None)
        if self.error:
            raise self.error
        return OVERHEAD


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    found, module = Measured(), "perfsuite.experiments.overhead.measurement"
    monkeypatch.setattr(f"{module}.measure_overhead", found.measure)
    return found


@pytest.mark.parametrize(
    ("name", "modes", "is_live"),
    [
        ("profiling", (None, "profile"), False),
        ("layer", ("profile", "record"), False),
        ("opencl", (None, "record"), False),
        ("opencl+live", (None, "record"), True),
    ],
)
def test_sides_on_opencl_differ_in_the_layer(
    name: str, modes: tuple[str | None, ...], is_live: bool, measured: Measured, tmp_path: Path
) -> None:
    """Each name sets one mode of the layer against another, on the same plan except a subscriber's socket."""
    backend, plan = opencl_backend(tmp_path), opencl_plan(tmp_path)
    comparison = OPENCL_COMPARISONS[name]
    assert compare_recorders(comparison, plan, HOST, BOARD, opencl=backend, n_pairs=7) is OVERHEAD
    [(plain, recorded)] = measured.sides
    assert tuple(side.environment.get(MODE) for side in (plain, recorded)) == modes
    assert [side.environment.get(LOG) for side in (plain, recorded)] == [
        str(RUN_FOLDER) if mode else None for mode in modes
    ]
    assert [("layer.so" in side.environment["OPENCL_LAYERS"]) for side in (plain, recorded)] == [*map(bool, modes)]
    assert all("compat.so" in side.environment["OPENCL_LAYERS"] for side in (plain, recorded))
    assert plain.plan == plan
    assert recorded.plan == replace(plan, live_socket=LIVE_SOCKET if is_live else None)
    assert measured.asked["n_pairs"] == 7


@pytest.mark.parametrize(("name", "recorder"), [("live", "none"), ("callback+live", "callback")])
def test_sides_on_the_processor_differ_in_the_subscriber(
    name: str, recorder: str, measured: Measured, tmp_path: Path
) -> None:
    """The plain side has no recorder and no socket, whatever the plan brings, and neither has a layer."""
    plan = replace(opencl_plan(tmp_path), recorder="preload", live_socket="/old", n_gpu_layers=0)
    compare_recorders(CPU_COMPARISONS[name], plan, HOST, BOARD, opencl=None, n_pairs=5)
    [(plain, recorded)] = measured.sides
    assert (plain.environment, recorded.environment) == ({}, {})
    assert plain.plan == replace(plan, recorder="none", live_socket=None)
    assert recorded.plan == replace(plan, recorder=recorder, live_socket=LIVE_SOCKET)


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

    replace_workers(monkeypatch, worker)
    monkeypatch.setattr("perfsuite.experiments.overhead.ebpf_cost.traced_by_ebpf", traced)
    two = replace(Machine.here(), usable_processors=(0, 1))
    monkeypatch.setattr(LocalBoard, "machine", lambda _: two)
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
