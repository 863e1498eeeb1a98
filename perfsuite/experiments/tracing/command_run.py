"""``perfsuite trace --model``, and what all recordings share: how, where to, and what is printed of them."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import median

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.opencl_run import engine_run, named_weights, opencl_backend
from perfsuite.cli.progress import remarks
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.recorder_traces import plan_words, traced_by_ebpf, traced_by_engine, traced_run
from perfsuite.measure.board.beside import N_REFAULTS, Beside
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind
from perfsuite.records.events import EngineRecord
from perfsuite.records.trace_file import write_trace
from perfsuite.records.trace_levels import DEFAULT_LEVELS, TraceLevel, level_words, parse_levels
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.opencl_trace import opencl_trace
from perfsuite.trace.recording import TRACE_NAME, new_folder
from perfsuite.units import NS_PER_S, format_count, format_ns

#: Raised whenever a key of the JSON changes its meaning.
_SCHEMA = 1

_HOME = Path(".perfsuite") / "traces"


def ebpf_plan(options: argparse.Namespace, helper: Path | str) -> EbpfPlan:
    """Return how the options want a process followed by a helper program; where its log goes is not known yet."""
    return EbpfPlan(
        helper=str(helper),
        log_path="",
        levels=int(parse_levels(options.trace or DEFAULT_LEVELS, "--trace")),
        buffer=options.buffer or "ring",
        floor_tokens_per_s=options.trace_floor,
        counters=tuple(options.counters.split(",")) if options.counters else (),
    )


@contextmanager
def recording_folder(named: str | None) -> Iterator[Path]:
    """Make the folder that the user named, or one of its own for each recording; one that stays empty goes away.

    Raises `MeasurementError`: it cannot be made, or holds a recording already.
    """
    folder = new_folder(Path(named) if named is not None else _HOME / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}")
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()  # refuses one that holds anything


def tell(options: argparse.Namespace, trace: EngineTrace, folder: Path) -> None:
    """Say what a recording holds and how to look at it."""
    summary = summarize_trace(trace)
    hint = f"look at it: perfsuite trace view statistics {shlex.quote(str(folder))} (or graph, or timeline)"
    answer = Answer(
        parts=lambda: [*summary_lines(summary), *([] if options.quiet else [hint])],
        plain=lambda: {"schema": _SCHEMA, "folder": str(folder), **asdict(summary)},
    )
    give(answer, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSwitch:
    """Levels that changed while recording."""

    #: Since the first event.
    at_ns: int
    levels: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """A trace in figures."""

    recorder: str
    levels: str
    pid: int | None
    duration_ns: int
    n_by_kind: dict[str, int]
    n_threads: int
    n_graphs: int
    #: Of the calls of llama_decode for one token; None where there was none.
    decode_step_ns: int | None
    n_decode_steps: int
    switches: tuple[LevelSwitch, ...]
    n_lost: int
    cut: str | None
    problems: tuple[str, ...]


def summarize_trace(trace: EngineTrace) -> TraceSummary:
    """Count what a trace holds."""
    events, tokens = trace.events, trace.of(EventKind.TOKEN)
    start_ns = int(events["start_ns"][0]) if events.size else 0
    end_ns = max((int(events[name].max()) for name in ("start_ns", "end_ns") if events.size), default=0)
    steps = tokens[(tokens["value"] == 1) & (tokens["end_ns"] > 0) & ((tokens["flags"] & EventFlag.CUT) == 0)]
    steps_ns = [int(ns) for ns in steps["end_ns"] - steps["start_ns"]]
    return TraceSummary(
        recorder=trace.recorder.value,
        levels=level_words(trace.levels),
        pid=trace.pid,
        duration_ns=max(end_ns - start_ns, 0),
        n_by_kind={kind.name.lower(): n for kind in EventKind if (n := int((events["kind"] == kind).sum()))},
        n_threads=len(trace.threads),
        n_graphs=len(trace.graphs),
        decode_step_ns=round(median(steps_ns)) if steps_ns else None,
        n_decode_steps=len(steps_ns),
        switches=tuple(
            LevelSwitch(at_ns=int(event["start_ns"]) - start_ns, levels=level_words(TraceLevel(int(event["value"]))))
            for event in trace.of(EventKind.LEVELS)
        ),
        n_lost=trace.n_lost,
        cut=trace.cut,
        problems=trace.problems,
    )


def summary_lines(summary: TraceSummary) -> Iterator[str]:
    """Yield a trace in a few lines."""
    nouns = {**{kind: kind.replace("_", " ") for kind in summary.n_by_kind}, "levels": "level change"}
    counts = ", ".join(format_count(n, nouns[kind]) for kind, n in summary.n_by_kind.items()) or "no event"
    whom = f"process {summary.pid}: " if summary.pid is not None else ""
    yield f"{whom}{counts} in {format_ns(summary.duration_ns)}, recorded by {summary.recorder} ({summary.levels})"
    if summary.decode_step_ns:
        speed = NS_PER_S / summary.decode_step_ns
        steps = format_count(summary.n_decode_steps, "step")
        yield f"decode: {format_ns(summary.decode_step_ns)} a token, {speed:.1f} tokens/s (median of {steps})"
    for switch in summary.switches:
        yield f"levels: {switch.levels} from {format_ns(switch.at_ns)} on"
    if summary.n_lost:
        yield f"lost: {format_count(summary.n_lost, 'event')} found no room"
    if summary.cut:
        yield f"cut: {summary.cut}"
    yield from (f"doubtful: {problem}" for problem in summary.problems)


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
    ebpf = ebpf_plan(options, board.instruments.ebpf_helper()) if recorder == "ebpf" else None
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
