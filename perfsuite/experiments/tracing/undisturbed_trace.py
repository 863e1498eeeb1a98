"""Traces a run of the suite's own until one process had the processors for itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from perfsuite.device.profile import Profile
from perfsuite.experiments.recorder_traces import traced_by_engine
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Rule, tried
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.trace_file import write_trace
from perfsuite.trace.recording import TRACE_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class UndisturbedTrace:
    """One traced process."""

    trace: EngineTrace
    #: What competed with it, where every try had competition.
    complaint: str | None


def undisturbed_trace(plan: LlamaPlan, recorder: str, profile: Profile, *, folder: Path) -> UndisturbedTrace:
    """Run a plan under one of the engine's own recorders, and keep its trace in a folder.

    Raises `MeasurementError`: a worker failed, or the trace cannot be written.
    """
    take = partial(traced_by_engine, plan, recorder)
    traced, complaint = tried(take, attrgetter("payload"), Rule(profile=profile))
    folder.mkdir(parents=True, exist_ok=True)
    write_trace(folder / TRACE_NAME, traced.trace, overwrites=True)
    return UndisturbedTrace(trace=traced.trace, complaint=complaint)
