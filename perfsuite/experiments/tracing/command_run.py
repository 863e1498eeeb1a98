"""``perfsuite trace --model``: a run of the suite's own under the recorder that is asked for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from perfsuite.cli.opencl_run import engine_run, opencl_backend
from perfsuite.cli.progress import Progress, remarks
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.experiments.recorder_traces import traced_by_ebpf, traced_by_engine
from perfsuite.experiments.tracing.command_lines import recording_folder, tell
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.ebpf_helper import find_helper
from perfsuite.measure.launch import Observe
from perfsuite.measure.memory_limit import drop_file_pages, limited_memory, memory_limit_obstacle
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.trace_levels import DEFAULT_LEVELS, parse_levels
from perfsuite.units import format_count


def trace_run(options: argparse.Namespace) -> int:
    """Run a model once and keep the trace of it."""
    profile = find_local_profile(options.device)
    if options.memory_limit is not None:
        _bytes(options.memory_limit)
    with recording_folder(options.output) as folder, taken_device(profile, "trace", options) as taken:
        return _traced(options, taken.board, folder)


def _traced(options: argparse.Namespace, board: Board, folder: Path) -> int:
    recorder = options.recorder or ("ebpf" if options.trace else "preload")
    opencl = opencl_backend(options) if recorder == "opencl" else None
    plan = own_plan(options, opencl)
    ebpf = ebpf_of(options, plan) if recorder == "ebpf" else None
    told = remarks("trace", options)
    observe = _memory_limit(options.memory_limit, plan, told)
    told.step(f"{Path(plan.gguf_path).stem}, {options.scenario}, recorder {recorder}")
    if ebpf is not None:
        traced = traced_by_ebpf(plan, ebpf, folder, observe=observe)
        for note in traced.payload["ebpf_notes"]:
            told.remark(note)
        trace = traced.trace
    elif opencl is not None:
        from perfsuite.experiments.tracing.opencl_trace_run import traced_by_opencl

        trace = traced_by_opencl(plan, opencl, board, folder, announce=told.remark)
    else:
        trace = traced_by_engine(plan, recorder, folder, observe=observe).trace
    tell(options, trace, folder)
    return 0


def _memory_limit(text: str | None, plan: LlamaPlan, told: Progress) -> Observe | None:
    """Return what limits the worker's memory; the weights leave the page cache first, so that they count as its own."""
    if text is None:
        return None
    limit_bytes = _bytes(text)
    if obstacle := memory_limit_obstacle():
        raise MeasurementError(obstacle)
    drop_file_pages(Path(plan.gguf_path))

    @contextmanager
    def limited(pid: int) -> Iterator[None]:
        with limited_memory(pid, limit_bytes) as group:
            try:
                yield
            except MeasurementError:
                if not group.n_killed:
                    raise
                raise MeasurementError(
                    f"--memory-limit={text}: the kernel stopped the run, which needs more; weights that the engine "
                    "copies count in full (q4_0 on x86), those that it maps do not (q8_0)"
                ) from None
            if group.n_refaults is not None:
                told.remark(f"{format_count(group.n_refaults, 'page')} of files were read again")

    return limited


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)", text)
    if match is None:
        raise PerfsuiteError(f"--memory-limit={text}: expected bytes, such as 900M or 1.5G")
    return int(float(match[1]) * 1024 ** " KMG".index(match[2] or " "))


def own_plan(options: argparse.Namespace, opencl: OpenClBackend | None = None) -> LlamaPlan:
    """Return the plan of one run of what the options name, with no recorder in it."""
    return replace(engine_run(options, opencl).plan, recorder="none")


def ebpf_of(options: argparse.Namespace, plan: LlamaPlan) -> EbpfPlan:
    """Return how the options want a run of the suite's own followed."""
    return EbpfPlan(
        helper=str(find_helper(Path(plan.cache_dir))),
        log_path="",
        levels=int(parse_levels(options.trace or DEFAULT_LEVELS, "--trace")),
        buffer=options.buffer or "ring",
        floor_tokens_per_s=options.trace_floor,
        counters=tuple(options.counters.split(",")) if options.counters else (),
    )
