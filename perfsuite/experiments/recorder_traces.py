"""The recorders, a row for each, and the trace of llama.cpp in a fresh process under one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.engine_trace import EngineTrace, TraceRecorder
from perfsuite.records.events import EngineRecord
from perfsuite.records.opencl_log_file import read_opencl_log
from perfsuite.records.trace_file import write_trace
from perfsuite.trace.opencl.kernel_mapping import RecordedRun
from perfsuite.trace.recorded_trace import recorded_trace
from perfsuite.trace.recording import LOG_NAME, TRACE_NAME, Origin, finish_recording, write_origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """One recorder."""

    name: str
    #: Of the driver's own: its number in ``enum ps_recorder_kind``; None where it records from outside the driver.
    native: int | None = None
    #: A `TraceRecorder`: who a trace of it says that recorded; None where it makes no trace.
    traced_as: str | None = None
    #: Whether its cost is measured within one process, context by context.
    is_compared: bool = False


RECORDERS = {
    each.name: each
    for each in (
        Recorder(name="none", native=0),
        Recorder(name="callback", native=1, traced_as="callback", is_compared=True),
        Recorder(name="preload", native=2, traced_as="preload", is_compared=True),
        Recorder(name="cb_eval", native=3, is_compared=True),
        Recorder(name="groups", native=4),
        Recorder(name="experts", native=5, traced_as="callback"),
        Recorder(name="splits", native=6),
        Recorder(name="ebpf", traced_as="ebpf"),
        Recorder(name="opencl", traced_as="opencl"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderTrace:
    """One process: what its worker wrote, and its trace."""

    payload: Mapping[str, Any]
    trace: EngineTrace


def traced_by_engine(
    plan: LlamaPlan, recorder: str, board: Board, folder: Path | None = None, *, beside: Beside | None = None
) -> RecorderTrace:
    """Run a plan under one of the driver's own `RECORDERS` that make a trace; keep the trace where a folder is given.

    Raises MeasurementError: the worker failed, or the trace cannot be written.
    """
    payload = board.run(replace(plan, recorder=recorder), beside=beside)
    trace = _engine_trace(plan, payload, recorder)
    if folder is not None:
        write_trace(folder / TRACE_NAME, trace)
    return RecorderTrace(payload=payload, trace=trace)


def traced_by_ebpf(
    plan: LlamaPlan, ebpf: EbpfPlan, board: Board, folder: Path, *, beside: Beside | None = None
) -> RecorderTrace:
    """Run a plan on a board while the eBPF recorder there follows it; the trace is in `folder`.

    Raises MeasurementError: the worker failed, or the recorder could not attach.
    """
    write_origin(folder, Origin(layout=board.instruments.tensor_layout(board.facts().engine), command=plan_words(plan)))
    traced = replace(plan, ebpf=replace(ebpf, log_path=str(RUN_FOLDER / LOG_NAME)))
    payload = board.run(traced, files=folder, beside=beside)
    return RecorderTrace(payload=payload, trace=finish_recording(folder))


def traced_by_both(
    plan: LlamaPlan, recorder: str, ebpf: EbpfPlan, board: Board, folder: Path
) -> tuple[RecorderTrace, RecorderTrace]:
    """Run a plan once under two recorders, one of the engine's and the eBPF one; return both traces in that order.

    Raises MeasurementError: as `traced_by_ebpf`.
    """
    outside = traced_by_ebpf(replace(plan, recorder=recorder), ebpf, board, folder)
    inside = RecorderTrace(payload=outside.payload, trace=_engine_trace(plan, outside.payload, recorder))
    return inside, outside


def _engine_trace(plan: LlamaPlan, payload: Mapping[str, Any], recorder: str) -> EngineTrace:
    record = EngineRecord.from_plain(payload.get("engine"))
    who = TraceRecorder(RECORDERS[recorder].traced_as)
    return recorded_trace(record, who, pid=payload["pid"], command=plan_words(plan))


def plan_words(plan: LlamaPlan) -> tuple[str, ...]:
    """Say what ran, as nobody typed a command for it."""
    name = Path(plan.gguf_path).stem
    return ("perfsuite", name, f"{plan.n_prompt} prompt", f"{plan.n_gen} generated", f"{plan.n_threads} threads")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRun:
    """One process: what its worker wrote, and what the OpenCL layer saw in it."""

    payload: Mapping[str, Any]
    run: RecordedRun


def traced_run(plan: LlamaPlan, backend: OpenClBackend, board: Board) -> TracedRun:
    """Run a plan under the tracing layer.

    Raises MeasurementError: the worker failed, or the layer left no log: then the process never loaded it.
    """
    with work_folder() as logs:
        payload = board.run(plan, extra_environment=backend.environment(RUN_FOLDER), files=logs)
        found = sorted(logs.glob("opencl-*.log"))
        if len(found) != 1:
            raise MeasurementError(
                f"{backend.tracing_layer.name}: {len(found)} logs of one process; does its OpenCL loader know "
                "OPENCL_LAYERS? Debian's ocl-icd-libopencl1 (2.3 or newer) does"
            )
        trace = read_opencl_log(found[0])
    record = EngineRecord.from_plain(payload.get("engine"))
    return TracedRun(payload=payload, run=RecordedRun(record=record, trace=trace, group_ends=plan.group_ends))


def grouped_plan(plan: LlamaPlan, group_ends: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())) -> LlamaPlan:
    """Return the plan of the same workload once, group by group; node by node where no groups are given."""
    return replace(plan, recorder="groups", group_ends=group_ends, n_repetitions=1)
