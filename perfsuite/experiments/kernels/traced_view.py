"""Runs a workload on the OpenCL backend until one process was undisturbed, and looks at its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from perfsuite.device.profile import Profile
from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.recorder_traces import traced_run
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Rule, others_complaint, tried
from perfsuite.trace.opencl.device_clock import AlignedTrace, align
from perfsuite.trace.opencl.engine_view import EngineView, engine_view


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedView:
    """One process of a workload, seen from its device."""

    engine_version: str
    aligned: AlignedTrace
    view: EngineView
    #: What competed with it, where every try had competition.
    complaint: str | None


def traced_view(
    plan: LlamaPlan,
    backend: OpenClBackend,
    profile: Profile,
    board: Board,
    *,
    model: str,
    cache_dir: Path,
    announce: Callable[[str], None],
) -> TracedView:
    """Learn the mapping of a workload where that was never done, run it, and return what its kernels show.

    Raises `MeasurementError`: a worker failed, or the kernels cannot be told apart.
    """
    mapping = learnt_mapping(plan, backend, board, model=model, cache_dir=cache_dir, announce=announce)
    rule = Rule(profile=profile, complain=others_complaint)
    traced, complaint = tried(partial(traced_run, plan, backend, board), attrgetter("payload"), rule)
    aligned = align(traced.run.trace)
    record = traced.run.record
    return TracedView(
        engine_version=record.engine_version,
        aligned=aligned,
        view=engine_view(record, aligned, mapping),
        complaint=complaint,
    )
