"""Traces a run on the OpenCL backend: what the host enqueued and what the device did, operator by operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.recorder_traces import plan_words
from perfsuite.experiments.traced_run import traced_run
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.events import EngineRecord
from perfsuite.records.trace_file import write_trace
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.opencl_trace import opencl_trace
from perfsuite.trace.recording import TRACE_NAME


def traced_by_opencl(
    plan: LlamaPlan,
    backend: OpenClBackend,
    board: Board,
    folder: Path,
    *,
    model: str,
    cache_dir: Path,
    announce: Callable[[str], None],
) -> EngineTrace:
    """Run a plan under the OpenCL layer, with the operator of each kernel, and keep the trace.

    A second process lists the graphs, for what asks the engine about them would disturb the first.

    Raises `MeasurementError`: a worker failed, the kernels cannot be told apart, or the trace cannot be written.
    """
    mapping = learnt_mapping(plan, backend, board, model=model, cache_dir=cache_dir, announce=announce)
    announce("listing the graphs")
    listed = board.run(replace(plan, recorder="splits"), extra_environment=backend.environment(None))
    announce("tracing")
    run = traced_run(plan, backend, board).run
    shapes = EngineRecord.from_plain(listed.get("engine"))
    trace = opencl_trace(run.record, align(run.trace), mapping, shapes=shapes, command=plan_words(plan))
    write_trace(folder / TRACE_NAME, trace)
    return trace
