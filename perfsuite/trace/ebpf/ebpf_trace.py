"""Turns the eBPF recorder's log into a trace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.bpf_log import BpfKind, BpfLog
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Events, Ints, TraceRecorder, new_events
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.trace.ebpf.experts import ExpertsFound, experts_of
from perfsuite.trace.ebpf.graphs import GraphsFound, find_graphs
from perfsuite.trace.ebpf.intervals import (
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
from perfsuite.trace.ebpf.tables import backend_name, number_threads, probe_costs_of, threads_of
from perfsuite.trace.ebpf.threads import thread_states


def ebpf_trace(log: BpfLog, layout: TensorLayout, *, command: tuple[str, ...] = ()) -> EngineTrace:
    """Return what a log shows; `layout` is that of the library that the traced process had loaded.

    Raises
    ------
    MeasurementError
        The log's tensors are not what the layout says.
    """
    if log.tensor_bytes != layout.tensor_bytes and log.positions(BpfKind.STRUCTURE).size:
        raise MeasurementError(
            f"{log.path}: tensors of {log.tensor_bytes} bytes; {layout.version} (build {layout.build_id}) has "
            f"{layout.tensor_bytes}; read the layout from the library that the traced process has loaded"
        )
    return _Trace(log, layout).trace(command, layout.version)


class _Trace:
    """The parts of one log, each made from those before it."""

    def __init__(self, log: BpfLog, layout: TensorLayout) -> None:
        self._log = log
        self._levels: LevelChanges = level_changes(log)
        self._tokens: Intervals = intervals_of(log, BpfKind.TOKEN_BEGIN, BpfKind.TOKEN_END)
        self._splits: Intervals = intervals_of(log, BpfKind.GRAPH_BEGIN, BpfKind.GRAPH_END)
        #: What an evaluation is: a graph or split, and where those were not recorded, a call of llama_decode.
        self._evaluations = self._splits if self._splits.size else self._tokens
        self._operators: Operators = operators_of(log, self._evaluations, self._levels)
        reader = StructureReader(layout)
        self._structures: Structures = structures_of(log, self._evaluations, reader)
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
        """Return the iteration of each evaluation."""
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
        """Return what operators counted, and the operators in the order of their begins."""
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
        """Return the processors of records; NOTHING where the log has no such processor."""
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
            yield "graphs overlap: an operator of a worker thread may be told as of the wrong one"
        failed = self._log.records["value"][self._tokens.end[self._tokens.end != NOTHING]]
        if (failed != 0).any():
            yield f"llama_decode failed {int((failed != 0).sum())} times, first with {int(failed[failed != 0][0])}"
        yield from self._experts.problems
