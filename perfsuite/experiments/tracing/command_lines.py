"""How a process is recorded and where that goes, and what is printed about what a recording holds."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from perfsuite.cli.answer import Answer, give
from perfsuite.measure.plan import EbpfPlan
from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind
from perfsuite.records.trace_levels import DEFAULT_LEVELS, TraceLevel, level_words, parse_levels
from perfsuite.trace.recording import new_folder
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
