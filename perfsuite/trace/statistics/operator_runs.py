"""Each operator of each evaluation, over all its threads, from the events of a trace.

For an operator that the threads t enter at s_t and leave at e_t, ns:

    duration = max e_t - min s_t       from the first entry to the last return
    busy     = sum of e_t - s_t        the time of all threads together
    busiest  = max of e_t - s_t

A device's commands are operators too where it is known whose they are; those of one operator run one after the other,
so `busy` is their time on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventFlag, EventKind, Ints, TraceRecorder
from perfsuite.records.events import PROMPT_PHASES, Phase
from perfsuite.trace.operators import RecordedOperator, n_positions_of, n_tokens_of, traced_operators

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRuns:
    """Operators, each as often as it was computed; arrays of one length, sorted by evaluation and node."""

    #: Calls of llama_decode; evaluations where those are not known.
    step: Ints
    evaluation: Ints
    graph: Ints
    node: Ints
    start_ns: Ints
    end_ns: Ints
    busy_ns: Ints
    busiest_ns: Ints
    n_threads: Ints
    #: Whether the step is one of decoding: of one token, by its call of llama_decode, or by its graph where no call was
    #: recorded.
    is_decode: Bools
    #: Whether `end_ns` is where the operator ended, and not where the thread's next one began.
    has_ends: Bools
    #: Rows of what all threads counted, one column for each counter's name; NOTHING where one did not count.
    counters: Ints
    #: Whether these are a device's commands.
    is_device: bool

    @property
    def duration_ns(self) -> Ints:
        """From the first entry to the last return; of a device, the time of its commands."""
        return self.busy_ns if self.is_device else self.end_ns - self.start_ns

    def __len__(self) -> int:
        return int(self.start_ns.size)


def operator_runs(trace: EngineTrace) -> OperatorRuns:
    """Return the operators of a trace; of a device's trace its commands, for its operators are the host's enqueueing.

    Events without an end, cut ones, and those of unknown nodes are left out.
    """
    commands = operator_events(trace, EventKind.KERNEL)
    is_device = trace.recorder is TraceRecorder.OPENCL and commands.size > 0
    at = commands if is_device else operator_events(trace, EventKind.OPERATOR)
    events = trace.events
    evaluation = events["evaluation"][at].astype(np.int64)
    evaluation = np.where(evaluation == NOTHING, events["iteration"][at], evaluation)
    key = evaluation * (max(map(len, trace.graphs), default=0) + 1) + events["node"][at]
    order = np.argsort(key, kind="stable")
    at, key = at[order], key[order]
    first = np.flatnonzero(np.diff(key, prepend=key[0] - 1)) if key.size else np.zeros(0, dtype=np.int64)
    start_ns, end_ns = events["start_ns"][at], events["end_ns"][at]
    busy_ns = end_ns - start_ns
    step = events["iteration"][at[first]].astype(np.int64)
    evaluation = evaluation[order][first]
    graph = events["graph"][at[first]].astype(np.int64)
    return OperatorRuns(
        step=np.where(step == NOTHING, evaluation, step),
        evaluation=evaluation,
        graph=graph,
        node=events["node"][at[first]].astype(np.int64),
        start_ns=_reduced(np.minimum, start_ns, first),
        end_ns=_reduced(np.maximum, end_ns, first),
        busy_ns=_reduced(np.add, busy_ns, first),
        busiest_ns=_reduced(np.maximum, busy_ns, first),
        n_threads=np.diff(first, append=at.size),
        is_decode=_decodes(trace, step, graph),
        has_ends=~_reduced(np.logical_or, events["flags"][at] & EventFlag.END_DERIVED != 0, first).astype(bool),
        counters=_counted(trace, at, first),
        is_device=is_device,
    )


def operator_events(trace: EngineTrace, kind: EventKind) -> Ints:
    """Return the positions of the events of known operators, on a thread or a device, that lie whole in the trace."""
    events = trace.events
    is_whole = (events["end_ns"] != NOTHING) & (events["flags"] & EventFlag.CUT == 0)
    is_known = (events["node"] != NOTHING) & (events["graph"] != NOTHING)
    has_thread = (events["thread"] != NOTHING) | (kind == EventKind.KERNEL)
    return np.flatnonzero((events["kind"] == kind) & is_whole & is_known & has_thread)


def _decodes(trace: EngineTrace, step: Ints, graph: Ints) -> Bools:
    """Return whether each run belongs to a step of one token; pieces of a prefill's graph may be of one token, too."""
    found = np.array([n_tokens_of(each) == 1 for each in trace.graphs], dtype=bool)[graph]
    calls = trace.of(EventKind.TOKEN)
    numbers, first = np.unique(calls["iteration"], return_index=True)
    if not numbers.size:
        return found
    at = np.minimum(np.searchsorted(numbers, step), numbers.size - 1)
    is_called = (numbers[at] == step) & (step != NOTHING)
    return np.where(is_called, calls["value"][first][at] == 1, found)


def _reduced(ufunc: np.ufunc, values: npt.NDArray[np.generic], first: Ints) -> Ints:
    found: Ints = ufunc.reduceat(values, first) if first.size else np.zeros(0, dtype=np.int64)
    return found


def _counted(trace: EngineTrace, at: Ints, first: Ints) -> Ints:
    if not trace.counter_names or not trace.counters.size or not first.size:
        return np.zeros((first.size, 0), dtype=np.int64)
    rows = trace.events["counters"][at]
    values = np.where((rows == NOTHING)[:, None], NOTHING, trace.counters[rows])
    totals: Ints = np.add.reduceat(values, first, axis=0)
    is_missing = np.logical_or.reduceat(values == NOTHING, first, axis=0)
    return np.where(is_missing, NOTHING, totals)


_Label = TypeVar("_Label")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTable:
    """The operators of all graphs, one graph behind the other."""

    operators: tuple[RecordedOperator, ...]
    #: Row of the first operator of each graph.
    first_rows: Ints
    #: By graph; None where it is not known.
    n_tokens: tuple[int | None, ...]
    n_positions: tuple[int | None, ...]
    #: What is no step of decoding.
    prompt_phase: Phase = Phase.PREFILL

    def rows_of(self, runs: OperatorRuns) -> Ints:
        rows: Ints = self.first_rows[runs.graph] + runs.node
        return rows

    def labelled(
        self, runs: OperatorRuns, label: Callable[[RecordedOperator, Phase], _Label]
    ) -> tuple[tuple[_Label, ...], Ints]:
        """Give each run the label of its operator and phase; return the labels, and each run's position in them."""
        keys, where = np.unique(self.rows_of(runs) * 2 + runs.is_decode, return_inverse=True)
        places: dict[_Label, int] = {}
        phases = (self.prompt_phase, Phase.DECODE)
        found = [label(self.operators[key // 2], phases[key % 2]) for key in keys.tolist()]
        of_key = np.array([places.setdefault(each, len(places)) for each in found], dtype=np.int64)
        return tuple(places), of_key[where]


def operator_table(trace: EngineTrace) -> OperatorTable:
    """Name the operators of a trace's graphs."""
    graphs = [traced_operators(graph) for graph in trace.graphs]
    sizes = np.array([0, *(len(graph) for graph in graphs)], dtype=np.int64)
    return OperatorTable(
        operators=tuple(operator for graph in graphs for operator in graph),
        first_rows=np.cumsum(sizes)[:-1],
        n_tokens=tuple(map(n_tokens_of, trace.graphs)),
        n_positions=tuple(map(n_positions_of, trace.graphs)),
        prompt_phase=next((phase for phase in PROMPT_PHASES if phase.value in trace.phases), Phase.PREFILL),
    )


_OP = "MUL_MAT_ID"


def expert_products(runs: OperatorRuns, table: OperatorTable) -> Iterator[tuple[int, int, int]]:
    """Yield the position among the runs, the step and the layer of each product with experts that has a layer."""
    rows = table.rows_of(runs)
    wanted = [row for row in np.unique(rows).tolist() if table.operators[row].op == _OP]
    for at in np.flatnonzero(np.isin(rows, wanted)).tolist():
        layer = table.operators[int(rows[at])].layer
        if layer is not None:
            yield at, int(runs.step[at]), layer
