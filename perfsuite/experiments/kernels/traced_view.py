"""Runs a workload on the OpenCL backend until one process was undisturbed, and looks at its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.profile import Profile
from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.traced_run import traced_run
from perfsuite.measure.contention import Contention
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.undisturbed import others_complaint
from perfsuite.trace.opencl.device_clock import AlignedTrace, align
from perfsuite.trace.opencl.engine_view import EngineView, engine_view

#: How often a process is run at most until one had the processors for itself.
N_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedView:
    """One process of a workload, seen from its device."""

    engine_version: str
    aligned: AlignedTrace
    view: EngineView
    #: What competed with it, where every try had competition.
    complaint: str | None


def traced_view(
    plan: LlamaPlan, backend: OpenClBackend, profile: Profile, *, cache_dir: Path, announce: Callable[[str], None]
) -> TracedView:
    """Learn the mapping of a workload where that was never done, run it, and return what its kernels show.

    Raises `MeasurementError`: a worker failed, or the kernels cannot be told apart.
    """
    mapping = learnt_mapping(plan, backend, cache_dir=cache_dir, announce=announce)
    for _ in range(N_TRIES):
        traced = traced_run(plan, backend)
        complaint = others_complaint(Contention.from_plain(traced.payload["contention"]), profile)
        if complaint is None:
            break
    aligned = align(traced.run.trace)
    record = traced.run.record
    return TracedView(
        engine_version=record.engine_version,
        aligned=aligned,
        view=engine_view(record, aligned, mapping),
        complaint=complaint,
    )
