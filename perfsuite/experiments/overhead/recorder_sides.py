"""Which two ways to run the same work tell what a recorder, or several together, cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from perfsuite.device.profile import Profile
from perfsuite.experiments.overhead.live_cost import SUBSCRIBER_LIMIT_S
from perfsuite.experiments.overhead.measurement import Overhead, Side, measure_overhead
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.live import kept_subscribed
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan


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
    folder: Path,
    n_pairs: int,
    announce: Callable[[int], None] = lambda _: None,
) -> Overhead:
    """Measure one comparison; logs and sockets lie in a folder that outlives it.

    Raises `MeasurementError`: a worker failed, or competition left too few pairs.
    """
    bare = replace(plan, recorder="none", live_socket=None)
    recorded = replace(bare, recorder=comparison.recorder)
    with ExitStack() as stack:
        if comparison.is_live:
            socket = folder / "live.sock"
            recorded = replace(recorded, live_socket=str(socket))
            stack.enter_context(kept_subscribed(socket, lambda _: None, limit_s=SUBSCRIBER_LIMIT_S))
        return measure_overhead(
            Side(plan=bare, environment=_environment(opencl, comparison.plain, folder)),
            Side(plan=recorded, environment=_environment(opencl, comparison.recorded, folder)),
            profile,
            board,
            n_pairs=n_pairs,
            announce=announce,
        )


def _environment(opencl: OpenClBackend | None, layer: Layer, folder: Path) -> Mapping[str, str]:
    if opencl is None:
        return {}
    return opencl.environment(None if layer is Layer.OFF else folder, profile_only=layer is Layer.PROFILE)
