"""Which two ways to run the same work tell what a recorder, or several together, cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from perfsuite.device.profile import Profile
from perfsuite.experiments.overhead.measurement import Overhead, Side, measure_overhead
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.live import LIVE_SOCKET
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.trace_levels import TraceLevel

_PLAIN = TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR
_STRUCTURE = _PLAIN | TraceLevel.STRUCTURE

#: What each recorder's name stands for; with ``+perf`` behind it the events go through the perf buffer.
EBPF_LEVELS: Mapping[str, TraceLevel] = {
    "ebpf-token": TraceLevel.TOKEN,
    "ebpf-graph": TraceLevel.TOKEN | TraceLevel.GRAPH,
    "ebpf-operator": _PLAIN,
    "ebpf-structure": _STRUCTURE,
    "ebpf-counters": _STRUCTURE | TraceLevel.COUNTERS,
    "ebpf-ends": _STRUCTURE | TraceLevel.ENDS,
    "ebpf-threads": _STRUCTURE | TraceLevel.THREADS,
    "ebpf-experts": _STRUCTURE | TraceLevel.EXPERTS,
    "ebpf-all": ~TraceLevel(0),
}

_PERF = "+perf"

#: All names.
EBPF_RECORDERS = tuple(name + suffix for suffix in ("", _PERF) for name in EBPF_LEVELS)


def ebpf_plan(name: str, helper: Path, log_path: Path) -> EbpfPlan:
    """Return the plan of the recorder of that name, which is one of `EBPF_RECORDERS`."""
    levels = EBPF_LEVELS[name.removesuffix(_PERF)]
    buffer = "perf" if name.endswith(_PERF) else "ring"
    return EbpfPlan(helper=str(helper), log_path=str(log_path), levels=int(levels), buffer=buffer)


class Layer(Enum):
    """What the OpenCL layer does in a process."""

    #: It is not there.
    OFF = "off"
    #: It switches the runtime's profiling on, and nothing else.
    PROFILE = "profile"
    RECORD = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is compared under one name."""

    #: What the name stands for, in words.
    meaning: str
    #: What the OpenCL layer does on either side.
    plain: Layer = Layer.OFF
    recorded: Layer = Layer.OFF
    #: The recorder of the processor's operators on the second side.
    recorder: str = "none"
    #: Whether the second side has a live subscriber.
    is_live: bool = False


#: On the processor; single recorders are compared within one process, which is finer.
CPU_COMPARISONS: Mapping[str, Comparison] = {
    "live": Comparison(meaning="a live subscriber", is_live=True),
    "callback+live": Comparison(meaning="operators, and a live subscriber", recorder="callback", is_live=True),
}

OPENCL_COMPARISONS: Mapping[str, Comparison] = {
    "profiling": Comparison(meaning="the runtime's own profiling", recorded=Layer.PROFILE),
    "layer": Comparison(
        meaning="the layer, beyond the runtime's profiling", plain=Layer.PROFILE, recorded=Layer.RECORD
    ),
    "opencl": Comparison(meaning="the layer and the runtime's profiling", recorded=Layer.RECORD),
    "opencl+live": Comparison(meaning="the same with a live subscriber", recorded=Layer.RECORD, is_live=True),
}


def compare_recorders(
    comparison: Comparison,
    plan: LlamaPlan,
    profile: Profile,
    board: Board,
    *,
    opencl: OpenClBackend | None,
    n_pairs: int,
    announce: Callable[[int], None] = lambda _: None,
) -> Overhead:
    """Measure one comparison; logs and sockets are in the folders of its runs.

    Raises `MeasurementError`: a worker failed, or competition left too few pairs.
    """
    bare = replace(plan, recorder="none", live_socket=None)
    recorded = replace(bare, recorder=comparison.recorder)
    if comparison.is_live:
        recorded = replace(recorded, live_socket=LIVE_SOCKET)
    return measure_overhead(
        Side(plan=bare, environment=_environment(opencl, comparison.plain)),
        Side(plan=recorded, environment=_environment(opencl, comparison.recorded)),
        profile,
        board,
        n_pairs=n_pairs,
        announce=announce,
        hear=(lambda _: None) if comparison.is_live else None,
    )


def _environment(opencl: OpenClBackend | None, layer: Layer) -> Mapping[str, str]:
    if opencl is None:
        return {}
    return opencl.environment(None if layer is Layer.OFF else RUN_FOLDER, profile_only=layer is Layer.PROFILE)
