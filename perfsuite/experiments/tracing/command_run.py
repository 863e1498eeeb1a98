"""``perfsuite trace --model``: a run of the suite's own under the recorder that is asked for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.opencl_run import engine_run, named_weights, opencl_backend
from perfsuite.cli.progress import remarks
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.recorder_traces import plan_words, traced_by_ebpf, traced_by_engine, traced_run
from perfsuite.experiments.tracing.command_lines import ebpf_plan, recording_folder, tell
from perfsuite.measure.board.beside import N_REFAULTS, Beside
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.events import EngineRecord
from perfsuite.records.trace_file import write_trace
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.opencl_trace import opencl_trace
from perfsuite.trace.recording import TRACE_NAME
from perfsuite.units import format_count


def trace_run(options: argparse.Namespace) -> int:
    """Run a model once and keep the trace of it."""
    profile = find_profile(options.device)
    limit_bytes = None if options.memory_limit is None else _bytes(options.memory_limit)
    with recording_folder(options.output) as folder, taken_device(profile, "trace", options) as taken:
        trace = _traced(options, taken.board, folder, Beside(memory_limit_bytes=limit_bytes))
        tell(options, trace, folder)
    return 0


def _traced(options: argparse.Namespace, board: Board, folder: Path, beside: Beside) -> EngineTrace:
    recorder = options.recorder or ("ebpf" if options.trace else "preload")
    opencl = opencl_backend(options, board) if recorder == "opencl" else None
    ebpf = ebpf_of(options, board) if recorder == "ebpf" else None
    plan = own_plan(options, board, opencl)
    told = remarks("trace", options)
    told.step(f"{Path(plan.gguf_path).stem}, {options.scenario}, recorder {recorder}")
    if opencl is not None:
        model = named_weights(options).identity
        return traced_by_opencl(plan, opencl, board, folder, model=model, cache_dir=user_cache(), announce=told.remark)
    if ebpf is not None:
        traced = traced_by_ebpf(plan, ebpf, board, folder, beside=beside)
        for note in traced.payload["ebpf_notes"]:
            told.remark(note)
    else:
        traced = traced_by_engine(plan, recorder, board, folder, beside=beside)
    if (n_refaults := traced.payload.get(N_REFAULTS)) is not None:
        told.remark(f"{format_count(n_refaults, 'page')} of files were read again")
    return traced.trace


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)", text)
    if match is None:
        raise PerfsuiteError(f"--memory-limit={text}: expected bytes, such as 900M or 1.5G")
    return int(float(match[1]) * 1024 ** " KMG".index(match[2] or " "))


def own_plan(options: argparse.Namespace, board: Board, opencl: OpenClBackend | None = None) -> LlamaPlan:
    """Return the plan of one run of what the options name, with no recorder in it."""
    return replace(engine_run(options, board, opencl).plan, recorder="none")


def ebpf_of(options: argparse.Namespace, board: Board) -> EbpfPlan:
    """Return how the options want a run of the suite's own followed on a board."""
    return ebpf_plan(options, board.instruments.ebpf_helper())


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
