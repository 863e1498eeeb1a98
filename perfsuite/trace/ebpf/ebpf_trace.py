"""Turns the eBPF recorder's log into a trace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.bpf_log_file import PROBE_TAIL, BpfKind, BpfLog, Records, terminated
from perfsuite.records.engine_trace import (
    NOTHING,
    EngineTrace,
    EventFlag,
    EventKind,
    Events,
    Ints,
    ProbeCost,
    ThreadState,
    TracedThread,
    TraceRecorder,
    new_events,
)
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.ebpf.experts import ExpertsFound, experts_of
from perfsuite.trace.ebpf.graphs import GraphsFound, find_graphs
from perfsuite.trace.ebpf.intervals import (
    NEVER_NS,
    Intervals,
    LevelChanges,
    affected,
    doubtful_evaluations,
    intervals_of,
    last_ns_of,
    level_changes,
    n_lost_of,
)
from perfsuite.trace.ebpf.nodes import StructureReader, Structures, structures_of
from perfsuite.trace.ebpf.operators import Operators, operators_of

#: ``prev_state`` of a thread that was pre-empted: 0, or what ``sched_switch`` prints as ``R+`` (TASK_REPORT_MAX).
_PREEMPTED = (0, 0x100)


def thread_states(log: BpfLog, levels: LevelChanges, last_ns: int) -> Events:
    """Return the states of the target's threads; `thread` holds the thread's id.

    A thread that was switched out while it could run is runnable, any other is idle; one that is woken is runnable
    (ProfInfer, section on the timeline view, with the two states the right way round). A state ends where the next one
    begins, where threads are no longer recorded, or at `last_ns`.
    """
    records = log.records[log.positions(BpfKind.SWITCH_OUT, BpfKind.SWITCH_IN, BpfKind.WOKEN)]
    records = records[levels.is_on(TraceLevel.THREADS, records["ns"])]
    records = records[np.lexsort((records["ns"], records["tid"]))]
    records = records[_matters(records)]
    states = _events(records)
    same = np.append(records["tid"][1:] == records["tid"][:-1], False)[: records.size]
    next_ns = np.where(same, np.append(records["ns"], 0)[1:], NEVER_NS)
    off_ns = np.append(levels.switched(TraceLevel.THREADS), NEVER_NS)
    off_ns = off_ns[np.searchsorted(off_ns[:-1], states["start_ns"], side="right")]
    end_ns = np.minimum(np.minimum(next_ns, off_ns), np.maximum(last_ns, states["start_ns"]))
    states["end_ns"] = end_ns
    states["flags"] = np.where(end_ns < next_ns, EventFlag.CUT, 0)
    return np.concatenate([states, _running_before(records, levels)])


def _matters(records: Records) -> npt.NDArray[np.bool_]:
    """Mark the records that change a state: one that is woken before it is idle stays as it is."""
    is_woken = records["kind"] == BpfKind.WOKEN
    change = np.where(is_woken, 0, np.arange(records.size))
    before = np.maximum.accumulate(change) if records.size else change
    known = ~is_woken[before] & (records["tid"][before] == records["tid"])
    slept = (records["kind"][before] == BpfKind.SWITCH_OUT) & ~np.isin(records["value"][before], _PREEMPTED)
    follows = np.append(False, is_woken[:-1] & (records["tid"][1:] == records["tid"][:-1]))[: records.size]
    matters: npt.NDArray[np.bool_] = ~is_woken | ((slept | ~known) & ~follows)
    return matters


def _events(records: Records) -> Events:
    is_out, is_in = records["kind"] == BpfKind.SWITCH_OUT, records["kind"] == BpfKind.SWITCH_IN
    is_idle = is_out & ~np.isin(records["value"], _PREEMPTED)
    has_cpu = (is_in | (is_out & ~is_idle)) & (records["cpu"] < 1 << 15)
    return new_events(
        EventKind.THREAD_STATE,
        records.size,
        start_ns=records["ns"],
        thread=records["tid"].astype(np.int64),
        value=np.where(is_in, ThreadState.RUNNING, np.where(is_idle, ThreadState.IDLE, ThreadState.RUNNABLE)),
        cpu=np.where(has_cpu, records["cpu"].astype(np.int64), NOTHING),
    )


def _running_before(records: Records, levels: LevelChanges) -> Events:
    """Return what threads did that are switched out before anything else is known of them: they ran from the start."""
    is_first = np.append(True, records["tid"][1:] != records["tid"][:-1])[: records.size]
    leaving = records[is_first & (records["kind"] == BpfKind.SWITCH_OUT)]
    start_ns = np.full(leaving.size, levels.start_ns, np.int64)
    is_known = levels.is_on(TraceLevel.THREADS, start_ns)
    is_known &= ~levels.is_switched_within(TraceLevel.THREADS, start_ns, leaving["ns"])
    leaving = leaving[is_known & (leaving["ns"] > start_ns)]
    states = _events(leaving)
    states["value"], states["flags"] = ThreadState.RUNNING, EventFlag.CUT
    states["start_ns"], states["end_ns"] = levels.start_ns, leaving["ns"]
    states["cpu"] = np.where(leaving["cpu"] < 1 << 15, leaving["cpu"].astype(np.int64), NOTHING)
    return states


#: ``ggml_backend_*_guid`` of ggml 0.25.3, ``ggml/src/ggml-*/``. BLAS and OpenVINO share one, and are both left out.
_NAMES = {
    "aa67c74396e6a38ae3afea9236bcfc89": "CPU",
    "dee070a2734e4dbcb0c74fd46d4e90fe": "OpenCL",
    "2cdde81c65b365736a1288611cc9dc25": "CUDA",
    "b8f74f86403ce10291c8dde9023fc02b": "Vulkan",
    "81a18b1e71ec79ed2b85dc8a619830e6": "Metal",
    "99685b6cd2833d24253672e15b0e1403": "RPC",
    "7b57dcafde121d491111111111111111": "Hexagon",
    "5805138fcd3a619de7cd98a903fd7c53": "SYCL",
    "a194afacbd4f4734be1a9e711f9eed64": "CANN",
    "67c7a4b178744f519d65446de41b829a": "WebGPU",
}


def backend_name(guid: bytes | memoryview) -> str:
    """Return a backend's name, or its guid where the name is not known."""
    digits = bytes(guid).hex()
    return _NAMES.get(digits, f"guid:{digits}")


_LAST = 1 << 16


def threads_of(log: BpfLog, events: Events, evaluations: Intervals, operators: Operators) -> tuple[TracedThread, ...]:
    """Return the threads whose ids events have: first those that compute, by their number, then the others."""
    numbers = {int(tid): 0 for tid in np.unique(evaluations.tid)}
    tids, places = np.unique(operators.tid, return_index=True)
    numbers |= dict(zip(tids.tolist(), operators.thread[places].tolist(), strict=True))
    named = [int(tid) for tid in np.unique(events["thread"]) if tid != NOTHING]
    named.sort(key=lambda tid: (numbers.get(tid, _LAST), tid))
    positions = log.positions(BpfKind.THREAD_NAME)
    names = {int(log.records["tid"][each]): terminated(log.tail(each)) for each in positions}
    return tuple(TracedThread(tid=tid, name=names.get(tid, "")) for tid in named)


def number_threads(events: Events, threads: tuple[TracedThread, ...]) -> None:
    """Put each thread's place where its id was."""
    tids = np.array([each.tid for each in threads], np.int64)
    order = np.argsort(tids)
    known = events["thread"] != NOTHING
    events["thread"][known] = order[np.searchsorted(tids[order], events["thread"][known])]


def probe_costs_of(log: BpfLog) -> Iterator[ProbeCost]:
    """Yield what the kernel says that each program cost."""
    for position in log.positions(BpfKind.PROBE):
        n_runs, name = PROBE_TAIL.unpack_from(log.tail(position))
        run_time_ns = int(log.records["subject"][position])
        yield ProbeCost(name=terminated(name), n_runs=n_runs, run_time_ns=run_time_ns)


def ebpf_trace(log: BpfLog, layout: TensorLayout, *, command: tuple[str, ...] = ()) -> EngineTrace:
    """Return what a log shows; `layout` is that of the library that the traced process had loaded.

    Raises MeasurementError: the log's tensors are not what the layout says.
    """
    if log.tensor_bytes != layout.tensor_bytes and log.positions(BpfKind.STRUCTURE).size:
        raise MeasurementError(
            f"{log.path}: tensors of {log.tensor_bytes} bytes; {layout.version} (build {layout.build_id}) has "
            f"{layout.tensor_bytes}; read the layout from the library that the traced process has loaded"
        )
    return _Trace(log, layout).trace(command, layout.version)


class _Trace:
    def __init__(self, log: BpfLog, layout: TensorLayout) -> None:
        self._log = log
        self._levels: LevelChanges = level_changes(log)
        self._tokens: Intervals = intervals_of(log, BpfKind.TOKEN_BEGIN, BpfKind.TOKEN_END)
        self._splits: Intervals = intervals_of(log, BpfKind.GRAPH_BEGIN, BpfKind.GRAPH_END)
        #: What an evaluation is: a graph or split, and where those were not recorded, a call of llama_decode.
        self._evaluations = self._splits if self._splits.size else self._tokens
        self._structures: Structures = structures_of(log, self._evaluations, StructureReader(layout))
        self._operators: Operators = operators_of(log, self._evaluations, self._levels)
        self._doubtful = doubtful_evaluations(log, self._evaluations, self._levels)
        self._found: GraphsFound = find_graphs(self._operators, self._structures, self._doubtful)
        self._iteration = self._iterations()
        self._experts: ExpertsFound = experts_of(log, self._evaluations, self._iteration, self._structures)
        self._backends: list[str] = []

    def trace(self, command: tuple[str, ...], engine_version: str) -> EngineTrace:
        log = self._log
        states = thread_states(log, self._levels, last_ns_of(log))
        counted, operators = self._operator_events()
        events = np.concatenate([self._token_events(), self._graph_events(), operators, states, self._levels.events()])
        threads = threads_of(log, events, self._evaluations, self._operators)
        number_threads(events, threads)
        return EngineTrace(
            recorder=TraceRecorder.EBPF,
            levels=self._levels.all,
            pid=log.pid,
            command=command,
            engine_version=engine_version,
            events=events[np.argsort(events["start_ns"], kind="stable")],
            threads=threads,
            graphs=self._found.graphs,
            backends=tuple(self._backends),
            counter_names=log.counter_names,
            counters=counted,
            experts=self._experts.experts,
            n_experts=self._experts.n_experts,
            n_lost=n_lost_of(log),
            probe_costs=tuple(probe_costs_of(log)),
            cut=log.cut and f"{log.path.name}: {log.cut}",
            problems=tuple(self._problems()),
        )

    def _iterations(self) -> Ints:
        own = self._tokens.containing(self._evaluations.start_ns, self._evaluations.tid)
        any_thread = self._tokens.containing(self._evaluations.start_ns)
        return np.where(own == NOTHING, any_thread, own)

    def _token_events(self) -> Events:
        events = self._interval_events(EventKind.TOKEN, self._tokens)
        known = self._tokens.begin != NOTHING
        events["value"][known] = self._log.records["value"][self._tokens.begin[known]]
        events["iteration"] = np.arange(events.size)
        return events

    def _graph_events(self) -> Events:
        events = self._interval_events(EventKind.GRAPH, self._splits)
        events["evaluation"] = np.arange(events.size)
        if events.size:
            events["iteration"], events["graph"] = self._iteration, self._found.of_evaluation
        events["value"] = [self._backend(position) for position in self._splits.begin.tolist()]
        return events

    def _interval_events(self, kind: EventKind, intervals: Intervals) -> Events:
        cpu = self._cpus(np.where(intervals.begin == NOTHING, intervals.end, intervals.begin))
        times = {"start_ns": intervals.start_ns, "end_ns": intervals.end_ns}
        return new_events(kind, intervals.size, flags=intervals.flags, thread=intervals.tid, cpu=cpu, **times)

    def _backend(self, position: int) -> int:
        if position == NOTHING:
            return NOTHING
        name = backend_name(self._log.tail(position))
        if name not in self._backends:
            self._backends.append(name)
        return self._backends.index(name)

    def _operator_events(self) -> tuple[Ints, Events]:
        found = self._operators
        order = np.argsort(found.start_ns, kind="stable")
        order = order[~self._found.is_empty[order]]
        taken = {field: getattr(found, field)[order] for field in ("start_ns", "end_ns", "evaluation", "flags")}
        events = new_events(EventKind.OPERATOR, order.size, thread=found.tid[order], **taken)
        events["graph"], events["node"] = self._found.graph[order], self._found.node[order]
        known = events["evaluation"] != NOTHING
        if self._iteration.size:
            events["iteration"][known] = self._iteration[events["evaluation"][known]]
        events["cpu"] = self._cpus(found.begin[order])
        counted = found.counters[order]
        has = (counted != NOTHING).any(axis=1)
        events["counters"][has] = np.arange(int(has.sum()))
        return counted[has], events

    def _cpus(self, positions: Ints) -> Ints:
        cpus = self._log.records["cpu"][positions].astype(np.int64)
        return np.where((cpus < self._log.n_cpus) & (cpus < 1 << 15), cpus, NOTHING)

    def _problems(self) -> Iterator[str]:
        if n_lost := n_lost_of(self._log):
            yield f"{n_lost} events found no room: {affected(self._doubtful)}"
        if self._found.n_unknown and not self._structures.operators:
            yield "operators are known by their addresses only: structure was not recorded"
        elif self._found.n_unknown:
            yield f"{self._found.n_unknown} operators of the first thread have no structure: it was lost"
        is_strange = (self._found.node == NOTHING) & (self._operators.evaluation != NOTHING) & ~self._found.is_empty
        if n_without := int(is_strange.sum()):
            yield f"{n_without} operators of other threads are of no operator of the first thread"
        if n_outside := int((self._operators.evaluation == NOTHING).sum()):
            yield f"{n_outside} operators lie outside of all graphs that were recorded"
        if self._evaluations.overlaps:
            yield "graphs overlap: an operator of a worker thread may be reported as of the wrong one"
        failed = self._log.records["value"][self._tokens.end[self._tokens.end != NOTHING]]
        if (failed != 0).any():
            yield f"llama_decode failed {int((failed != 0).sum())} times, first with {int(failed[failed != 0][0])}"
        yield from self._experts.problems
