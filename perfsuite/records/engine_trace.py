"""One schema of events for all recorders: what a run of the engine did, when, on which thread and processor."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum, IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.records.events import Node
from perfsuite.records.trace_levels import TraceLevel

#: What a field of an event holds where there is nothing to say: no processor, no iteration, no node, no counters.
NOTHING = -1

#: One event. `start_ns` and `end_ns` are of the monotonic clock; an event that has no end known has `end_ns` NOTHING.
EVENT_DTYPE = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        #: By kind: tokens of a TOKEN, position in `backends` of a GRAPH, `ThreadState` of a THREAD_STATE, position in
        #: `kernels` of a KERNEL, `TraceLevel` from then on of a LEVELS, position in `phases` of a PHASE.
        ("value", "<i8"),
        #: Position in `threads`.
        ("thread", "<i4"),
        #: How many iterations (calls of llama_decode) and evaluations (graphs computed) came before this one's.
        ("iteration", "<i4"),
        ("evaluation", "<i4"),
        #: Position in `graphs`, and of the node in it: of an OPERATOR, and of a KERNEL whose operator is known. A GRAPH
        #: has the first alone, where its nodes are known.
        ("graph", "<i4"),
        ("node", "<i4"),
        #: Row of `counters`: what an OPERATOR counted on this thread.
        ("counters", "<i4"),
        ("cpu", "<i2"),
        ("kind", "u1"),
        ("flags", "u1"),
    ]
)

#: The experts that a layer's router chose for one token of a batch: `n_used` rows of one (iteration, layer, token).
EXPERT_DTYPE = np.dtype(
    [
        ("ns", "<i8"),
        ("iteration", "<i4"),
        ("layer", "<i4"),
        #: Position in the batch, and of the expert among those chosen (0: the first).
        ("token", "<i4"),
        ("slot", "<i4"),
        ("expert", "<i4"),
    ]
)

#: Times in ns, and counts or positions; one-dimensional, as those of `EVENT_DTYPE` and `EXPERT_DTYPE` are.
Times = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int64]
Events = npt.NDArray[np.void]
Experts = npt.NDArray[np.void]


class EventKind(IntEnum):
    """What an event is about."""

    #: One call of llama_decode.
    TOKEN = 1
    #: The computation of one graph, or of one split of it, on one backend.
    GRAPH = 2
    #: One operator on one thread. Where the recorder sees ends, from its start to its thread's arrival at the barrier;
    #: otherwise to where the thread's next operator begins (flag END_DERIVED).
    OPERATOR = 3
    THREAD_STATE = 4
    #: A command of an OpenCL device, while it ran there.
    KERNEL = 5
    #: Levels were switched; `end_ns` is the same time.
    LEVELS = 6
    #: A phase that the suite's own driver timed.
    PHASE = 7


class EventFlag(IntFlag):
    """What else is to know of an event."""

    #: The end is where the thread's next operator begins, or the graph ends: waiting for other threads is in it.
    END_DERIVED = 1
    #: The node is computed together with the one behind it.
    FUSED = 2
    #: A counter was scaled: it shared the hardware with others.
    MULTIPLEXED = 4
    #: The recorder came or went in the middle of it.
    CUT = 8
    #: The start is where the thread's operator before ended: waiting for other threads is in it.
    START_DERIVED = 16
    #: LEVELS were switched because the speed fell below the floor, or because it recovered; neither: on request.
    BELOW_FLOOR = 32
    RECOVERED = 64


class ThreadState(IntEnum):
    """What a thread does between two switches; the kernel's words in ProfInfer's three classes."""

    RUNNING = 1
    #: Pre-empted, or woken and not yet running: it could run, if it had a processor.
    RUNNABLE = 2
    IDLE = 3


class TraceRecorder(str, Enum):
    """Who recorded."""

    CALLBACK = "callback"
    PRELOAD = "preload"
    EBPF = "ebpf"
    OPENCL = "opencl"


def new_events(kind: EventKind, size: int, **fields: Any) -> Events:
    """Return events of one kind; fields that are left out hold NOTHING, flags 0."""
    made = np.full(size, NOTHING, EVENT_DTYPE)
    for name, value in {"kind": kind, "flags": 0, **fields}.items():
        made[name] = value
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedThread:
    """A thread of the traced process; for recorders that know no ids, `tid` is the number of the thread (0: first)."""

    tid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCost:
    """What the kernel says that one program of the recorder cost."""

    name: str
    n_runs: int
    run_time_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """What a trace has beside its events."""

    recorder: TraceRecorder
    levels: TraceLevel
    #: The traced process, and what was run; None where the recorder does not know.
    pid: int | None = None
    command: tuple[str, ...] = ()
    #: llama.cpp's own words for its version.
    engine_version: str = ""
    threads: tuple[TracedThread, ...] = ()
    backends: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    counter_names: tuple[str, ...] = ()
    #: Experts of a layer; None where the model has none, or nobody said.
    n_experts: int | None = None
    #: Events that found no room.
    n_lost: int = 0
    probe_costs: tuple[ProbeCost, ...] = ()
    #: Where and why the trace breaks off before its end; None where it is whole.
    cut: str | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTrace(TraceFacts):
    """A run as a recorder saw it."""

    #: `EVENT_DTYPE`, sorted by ``start_ns``.
    events: Events
    graphs: tuple[tuple[Node, ...], ...]
    #: Rows of int64, one column a name; NOTHING where it was not counted.
    counters: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), np.int64))
    #: `EXPERT_DTYPE`, in the order of time.
    experts: Experts = field(default_factory=lambda: np.empty(0, EXPERT_DTYPE))

    def of(self, kind: EventKind) -> Events:
        """Return the events of one kind, in the order of their starts."""
        selected: Events = self.events[self.events["kind"] == kind]
        return selected
