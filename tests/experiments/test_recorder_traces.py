"""Runs under recorders, and what they say of the same process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.recorder_traces import (
    TracedRun,
    traced_by_both,
    traced_by_ebpf,
    traced_by_engine,
    traced_run,
)
from perfsuite.experiments.tracing.agreement import recorder_agreement
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.engine_trace import EngineTrace, EventKind, TraceRecorder
from perfsuite.records.events import Phase
from perfsuite.records.trace_levels import parse_levels
from perfsuite.testing.workers import replace_workers
from perfsuite.trace.recording import TRACE_NAME, read_recording
from tests.synthetic_engine_kernels import FUSED, Step, recorded
from tests.synthetic_opencl import write_log
from tests.synthetic_opencl_backend import opencl_backend, opencl_plan

FULL_SPEED = recorded([Step(phase=Phase.PREFILL, kernels=FUSED), Step(phase=Phase.DECODE, kernels=FUSED)])
ENDS = ((0, 1, 1, 1, 1), (1, 1, 0, 0, 1))

#: Runs a plan with a worker that writes so many logs; returns what came back, and what the worker was given.
Run = Callable[..., tuple[TracedRun, list[tuple[LlamaPlan, Path]]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:

    def traced(plan: LlamaPlan, n_logs: int = 1) -> tuple[TracedRun, list[tuple[LlamaPlan, Path]]]:
        given: list[tuple[LlamaPlan, Path]] = []

        def work(plan: LlamaPlan, *, extra_environment: Mapping[str, str], **_: object) -> dict[str, Any]:
            folder = Path(extra_environment["PERFSUITE_OPENCL_LOG"])
            assert extra_environment["OPENCL_LAYERS"] == f"{tmp_path}/compat.so:{tmp_path}/layer.so"
            assert extra_environment["PERFSUITE_OPENCL_LAYER_MODE"] == "record"
            assert list(folder.glob("*.log")) == []
            given.append((plan, folder))
            for number in range(n_logs):
                write_log(folder / f"opencl-{number}.log", FULL_SPEED.trace)
            return {"engine": FULL_SPEED.record.to_plain(), "contention": {}}

        replace_workers(monkeypatch, work)
        return traced_run(plan, opencl_backend(tmp_path), LocalBoard(cache_dir=tmp_path)), given

    return traced


def test_a_process_brings_its_record_and_its_commands(run: Run, tmp_path: Path) -> None:
    plan = replace(opencl_plan(tmp_path), group_ends=ENDS)
    traced, [(given, folder)] = run(plan)
    assert given == plan
    assert traced.run.record == FULL_SPEED.record
    assert np.array_equal(traced.run.trace.commands, FULL_SPEED.trace.commands)
    assert (traced.run.trace.names, traced.run.group_ends) == (FULL_SPEED.trace.names, ENDS)
    assert {"engine", "contention"} <= set(traced.payload)
    assert not folder.exists()


@pytest.mark.parametrize("n_logs", [0, 2])
def test_a_process_leaves_one_log(run: Run, n_logs: int, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=rf"layer\.so: {n_logs} logs of one process; .* OPENCL_LAYERS\?"):
        run(opencl_plan(tmp_path), n_logs)


@pytest.fixture(scope="module")
def plan(small_plan: LlamaPlan) -> LlamaPlan:
    return replace(small_plan, n_threads=2, recorder="none")


@pytest.fixture(scope="module")
def board(engine_cache: Path) -> LocalBoard:
    return LocalBoard(cache_dir=engine_cache)


def _ebpf(helper: Path, levels: str, buffer: str = "ring") -> EbpfPlan:
    return EbpfPlan(helper=str(helper), log_path="", levels=int(parse_levels(levels, "--trace")), buffer=buffer)


@pytest.mark.parametrize(
    ("recorder", "told"), [("callback", TraceRecorder.CALLBACK), ("preload", TraceRecorder.PRELOAD)]
)
def test_a_run_under_a_recorder_of_its_own_is_kept(
    plan: LlamaPlan, board: LocalBoard, tmp_path: Path, recorder: str, told: TraceRecorder
) -> None:
    trace = traced_by_engine(plan, recorder, board, tmp_path).trace
    assert trace.recorder is told
    assert "4 generated" in trace.command
    assert read_recording(tmp_path / TRACE_NAME).events.tolist() == trace.events.tolist()
    threads = {int(each) for each in trace.of(EventKind.OPERATOR)["thread"]}
    assert threads == ({0, 1} if recorder == "preload" else {0})


@pytest.mark.long_but_first
@pytest.mark.parametrize("buffer", ["ring", "perf"])
def test_both_recorders_see_the_same_operators(
    plan: LlamaPlan, board: LocalBoard, requires_ebpf: Path, tmp_path: Path, buffer: str
) -> None:
    """Of one process: the same operators in the same order, as many, and every thread accounts for its graphs."""
    inside, outside = traced_by_both(
        plan, "callback", _ebpf(requires_ebpf, "operator,ends", buffer=buffer), board, tmp_path
    )
    found = recorder_agreement(outside.trace, inside.trace)
    assert found.is_same, found.first_difference
    assert found.n_evaluations == plan.n_gen + 1
    assert found.n_ebpf == found.n_callback > 0
    assert outside.trace.n_lost == 0
    assert {each.thread for each in found.threads} == {0, 1}
    assert all(each.accounted_ratio == pytest.approx(1.0, abs=0.01) for each in found.threads)


def _choices(trace: EngineTrace) -> dict[tuple[int, int, int, int], int]:
    rows = trace.experts
    keys = zip(*(rows[name].tolist() for name in ("iteration", "layer", "token", "slot")), strict=True)
    return dict(zip(keys, rows["expert"].tolist(), strict=True))


def test_experts_are_those_of_the_tensor(
    routed_plan: LlamaPlan, board: LocalBoard, requires_ebpf: Path, tmp_path: Path
) -> None:
    """What eBPF reads from the product's third source is what the engine hands back, in every layer of every step."""
    routed_plan = replace(routed_plan, n_threads=2, recorder="none")
    inside, outside = traced_by_both(routed_plan, "experts", _ebpf(requires_ebpf, "experts"), board, tmp_path)
    told, read = _choices(inside.trace), _choices(outside.trace)
    steps = {key: expert for key, expert in told.items() if key[0] > 0}
    assert {key: read.get(key) for key in steps} == steps
    assert len(steps) == routed_plan.n_gen * 2 * 4
    assert read == told
    assert inside.trace.n_experts == 60


def test_a_run_can_be_traced_at_any_level(
    plan: LlamaPlan, board: LocalBoard, requires_ebpf: Path, tmp_path: Path
) -> None:
    trace = traced_by_ebpf(plan, _ebpf(requires_ebpf, "graph,threads"), board, tmp_path).trace
    assert not trace.of(EventKind.OPERATOR).size
    assert trace.of(EventKind.TOKEN).size == plan.n_gen + 1
    assert trace.of(EventKind.THREAD_STATE).size
    assert np.all(np.diff(trace.events["start_ns"]) >= 0)
