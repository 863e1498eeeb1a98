"""Runs llama.cpp in a fresh process under a recorder, and returns its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import find_engine
from perfsuite.measure.launch import Observe
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.measure.recorders import RECORDERS
from perfsuite.measure.tensor_layout import tensor_layout
from perfsuite.records.engine_trace import EngineTrace, TraceRecorder
from perfsuite.records.events import EngineRecord
from perfsuite.records.trace_file import write_trace
from perfsuite.trace.recorded_trace import recorded_trace
from perfsuite.trace.recording import LOG_NAME, TRACE_NAME, Origin, finish_recording, write_origin


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderTrace:
    """One process: what its worker wrote, and its trace."""

    payload: Mapping[str, Any]
    trace: EngineTrace


def traced_by_engine(
    plan: LlamaPlan, recorder: str, folder: Path | None = None, *, observe: Observe | None = None
) -> RecorderTrace:
    """Run a plan under one of the driver's own `RECORDERS` that make a trace; keep the trace where a folder is given.

    Raises MeasurementError: the worker failed, or the trace cannot be written.
    """
    payload = _payload(replace(plan, recorder=recorder), observe)
    trace = _engine_trace(plan, payload, recorder)
    if folder is not None:
        write_trace(folder / TRACE_NAME, trace)
    return RecorderTrace(payload=payload, trace=trace)


def traced_by_ebpf(plan: LlamaPlan, ebpf: EbpfPlan, folder: Path, *, observe: Observe | None = None) -> RecorderTrace:
    """Run a plan while the eBPF recorder follows it; its log, and then the trace, lie in `folder`.

    Raises MeasurementError: the worker failed, or the recorder could not attach.
    """
    layout = tensor_layout(find_engine(Path(plan.library_dir)), Path(plan.cache_dir))
    write_origin(folder, Origin(layout=layout, command=plan_words(plan)))
    traced = replace(plan, ebpf=replace(ebpf, log_path=str(folder / LOG_NAME)))
    payload = _payload(traced, observe)
    return RecorderTrace(payload=payload, trace=finish_recording(folder))


def traced_by_both(plan: LlamaPlan, recorder: str, ebpf: EbpfPlan, folder: Path) -> tuple[RecorderTrace, RecorderTrace]:
    """Run a plan once under two recorders, one of the engine's and the eBPF one; return both traces in that order.

    Raises MeasurementError: as `traced_by_ebpf`.
    """
    outside = traced_by_ebpf(replace(plan, recorder=recorder), ebpf, folder)
    inside = RecorderTrace(payload=outside.payload, trace=_engine_trace(plan, outside.payload, recorder))
    return inside, outside


def _payload(plan: LlamaPlan, observe: Observe | None) -> dict[str, Any]:
    return LocalBoard(cache_dir=Path(plan.cache_dir)).run(plan, observe=observe)


def _engine_trace(plan: LlamaPlan, payload: Mapping[str, Any], recorder: str) -> EngineTrace:
    record = EngineRecord.from_plain(payload["engine"])
    who = TraceRecorder(RECORDERS[recorder].traced_as)
    return recorded_trace(record, who, pid=payload["pid"], command=plan_words(plan))


def plan_words(plan: LlamaPlan) -> tuple[str, ...]:
    """Say what ran, as nobody typed a command for it."""
    name = Path(plan.gguf_path).stem
    return ("perfsuite", name, f"{plan.n_prompt} prompt", f"{plan.n_gen} generated", f"{plan.n_threads} threads")
