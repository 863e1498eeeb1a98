"""Traces a run of the suite's own until one process had the processors for itself."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from pathlib import Path

from perfsuite.device.profile import Profile
from perfsuite.experiments.recorder_traces import traced_by_engine
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Rule, tried
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.trace_file import write_trace
from perfsuite.trace.recording import TRACE_NAME


def undisturbed_trace(
    plan: LlamaPlan, recorder: str, profile: Profile, board: Board, *, folder: Path
) -> tuple[EngineTrace, str | None]:
    """Run a plan under one of the engine's own recorders, and keep its trace in a folder.

    Returned are the trace and, where every try had competition, what competed with the last one.

    Raises `MeasurementError`: a worker failed, or the trace cannot be written.
    """
    take = partial(traced_by_engine, plan, recorder, board)
    traced, complaint = tried(take, attrgetter("payload"), Rule(profile=profile))
    folder.mkdir(parents=True, exist_ok=True)
    write_trace(folder / TRACE_NAME, traced.trace, overwrites=True)
    return traced.trace, complaint
