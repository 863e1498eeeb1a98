"""Where a recording goes, and what is printed about it and about what it holds."""

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
from typing import Any

import numpy as np

from perfsuite.cli.answer import Answer, give
from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind
from perfsuite.records.trace_levels import TraceLevel, level_words
from perfsuite.trace.recording import new_folder
from perfsuite.units import NS_PER_S, format_count, format_ns

#: Raised whenever a key of the JSON changes its meaning.
_SCHEMA = 1

_HOME = Path(".perfsuite") / "traces"


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
        plain=lambda: {"schema": _SCHEMA, "folder": str(folder), **summary.to_plain()},
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

    def to_plain(self) -> dict[str, Any]:
        """Return dicts, lists, numbers and strings."""
        return asdict(self)


def summarize_trace(trace: EngineTrace) -> TraceSummary:
    """Count what a trace holds."""
    events = trace.events
    start_ns = int(events["start_ns"][0]) if events.size else 0
    steps_ns = _decode_steps_ns(trace)
    return TraceSummary(
        recorder=trace.recorder.value,
        levels=level_words(trace.levels),
        pid=trace.pid,
        duration_ns=max(int(np.maximum(events["start_ns"], events["end_ns"]).max()) - start_ns, 0)
        if events.size
        else 0,
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


def _decode_steps_ns(trace: EngineTrace) -> list[int]:
    tokens = trace.of(EventKind.TOKEN)
    whole = (tokens["value"] == 1) & (tokens["end_ns"] > 0) & ((tokens["flags"] & EventFlag.CUT) == 0)
    steps = tokens[whole]
    return [int(ns) for ns in steps["end_ns"] - steps["start_ns"]]


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
