"""Whether two recorders of one run tell the same: the same operators in the same order, and the same time for them.

Both see thread 0 by the same clock. The callback recorder hears of ends alone, so each operator lasts from the end of
the one before it to its own, and the first from its start; the eBPF recorder's operators are counted in the same way.
That takes an eBPF trace with ENDS: without them, waiting for other threads is reported of another operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Events
from perfsuite.records.events import Node

_Times = npt.NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class TimesAgreement:
    """What both recorders tell of the time of some operators, in sum."""

    #: A phase, or an operator as ``ggml_op_desc`` spells it; empty for all together.
    name: str
    n_operators: int = 0
    ebpf_ns: int = 0
    callback_ns: int = 0

    def add(self, n_operators: int, ebpf_ns: int, callback_ns: int) -> None:
        """Add operators."""
        self.n_operators += n_operators
        self.ebpf_ns += ebpf_ns
        self.callback_ns += callback_ns

    @property
    def ratio(self) -> float | None:
        """The eBPF recorder's over the callback recorder's; None where that is nothing."""
        return self.ebpf_ns / self.callback_ns if self.callback_ns else None


@dataclass(slots=True, kw_only=True)
class ThreadAccount:
    """How far the operators of one thread account for the graphs that it computed."""

    #: Position in the eBPF trace's threads.
    thread: int
    #: In operators, and behind each of them until the next operator of the graph begins or the graph ends.
    own_ns: int = 0
    wait_ns: int = 0
    #: From the first operator's begin to the graph's end, of all graphs compared.
    graph_ns: int = 0

    def add(self, operators: Events, graph: np.void, n_nodes: int) -> None:
        """Add what the thread did in one graph of so many nodes.

        The time behind an operator whose follower is missing counts for nothing.
        """
        known = operators[operators["end_ns"] != NOTHING]
        if not known.size:
            return
        begin_ns = int(known["start_ns"][0] if known["node"][0] == 0 else graph["start_ns"])
        next_ns = np.append(known["start_ns"][1:], graph["end_ns"])
        follows = np.append(np.diff(known["node"]) == 1, known["node"][-1] == n_nodes - 1)
        self.own_ns += int((known["end_ns"] - known["start_ns"]).sum())
        self.wait_ns += int(np.where(follows, next_ns - known["end_ns"], 0).sum())
        self.graph_ns += int(graph["end_ns"]) - begin_ns

    @property
    def accounted_ratio(self) -> float | None:
        """Own and waiting time over that of the graphs: less than 1 where operators are missing."""
        return (self.own_ns + self.wait_ns) / self.graph_ns if self.graph_ns else None


def durations_ns(operators: Events) -> _Times:
    """Return the time from each operator's predecessor's end to its own end; of the first from its start."""
    bounds = np.append(operators["start_ns"][:1], operators["end_ns"])
    durations: _Times = np.diff(bounds)
    return durations


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderAgreement:
    """How far the two recorders agree."""

    #: Evaluations that both recorders have, and those that one has alone.
    n_evaluations: int
    n_callback_only: int
    n_ebpf_only: int
    #: Operators of thread 0 in the evaluations that both have.
    n_ebpf: int
    n_callback: int
    #: Evaluations whose operators are not the same in the same order, and the first such difference in words.
    n_different: int
    first_difference: str | None
    total: TimesAgreement
    phases: tuple[TimesAgreement, ...]
    ops: tuple[TimesAgreement, ...]
    threads: tuple[ThreadAccount, ...]

    @property
    def is_same(self) -> bool:
        """Whether both have the same evaluations, operator by operator."""
        return self.n_evaluations > 0 and not (self.n_callback_only or self.n_ebpf_only or self.n_different)


def recorder_agreement(ebpf: EngineTrace, callback: EngineTrace) -> RecorderAgreement:
    """Compare what the two recorders saw of the same process.

    Raises MeasurementError: one of them has no operators, or no graphs.
    """
    for trace in (ebpf, callback):
        if not trace.of(EventKind.OPERATOR).size or not trace.of(EventKind.GRAPH).size:
            raise MeasurementError(f"the {trace.recorder.value} recorder has no operators, or no graphs, to compare")
    return _Comparison(ebpf, callback).agreement()


class _Comparison:
    def __init__(self, ebpf: EngineTrace, callback: EngineTrace) -> None:
        self._ebpf, self._callback = ebpf, callback
        self._graphs = ebpf.of(EventKind.GRAPH)
        self._ours = _by_evaluation(ebpf.of(EventKind.OPERATOR))
        self._theirs = _by_evaluation(callback.of(EventKind.OPERATOR))
        self._n_ebpf = self._n_callback = 0
        self._differences: list[str] = []
        self._total = TimesAgreement(name="")
        self._phases: dict[str, TimesAgreement] = {}
        self._ops: dict[str, TimesAgreement] = {}
        self._threads: dict[int, ThreadAccount] = {}

    def agreement(self) -> RecorderAgreement:
        around = {number: self._graph_around(own) for number, own in self._theirs.items()}
        matched = {number: graph for number, graph in around.items() if graph is not None}
        for number, graph in matched.items():
            self._compare(number, graph)
        return RecorderAgreement(
            n_evaluations=len(matched),
            n_callback_only=len(around) - len(matched),
            n_ebpf_only=int(self._graphs.size) - len(matched),
            n_ebpf=self._n_ebpf,
            n_callback=self._n_callback,
            n_different=len(self._differences),
            first_difference=next(iter(self._differences), None),
            total=self._total,
            phases=tuple(self._phases.values()),
            ops=tuple(sums for _, sums in sorted(self._ops.items())),
            threads=tuple(account for _, account in sorted(self._threads.items())),
        )

    def _graph_around(self, operators: Events) -> np.void | None:
        """Return the graph of the eBPF recorder in which the operators ended."""
        ended_ns = int(operators["end_ns"][-1])
        before = int(np.searchsorted(self._graphs["start_ns"], ended_ns, side="right")) - 1
        if before < 0 or not self._graphs["start_ns"][before] <= ended_ns <= self._graphs["end_ns"][before]:
            return None
        graph: np.void = self._graphs[before]
        return graph

    def _compare(self, number: int, graph: np.void) -> None:
        all_threads = self._ours.get(int(graph["evaluation"]), self._graphs[:0])
        ours = all_threads[all_threads["thread"] == graph["thread"]]
        theirs = self._theirs[number]
        theirs = theirs[theirs["thread"] == 0]
        self._n_ebpf += int(ours.size)
        self._n_callback += int(theirs.size)
        n_nodes = len(self._ebpf.graphs[int(graph["graph"])]) if graph["graph"] != NOTHING else 0
        for thread in np.unique(all_threads["thread"]).tolist():
            own = all_threads[all_threads["thread"] == thread]
            self._threads.setdefault(thread, ThreadAccount(thread=thread)).add(own, graph, n_nodes)
        if difference := _difference(_nodes(self._ebpf, ours), _nodes(self._callback, theirs)):
            self._differences.append(f"evaluation {number}: {difference}")
        elif not (ours["end_ns"] == NOTHING).any():
            self._add_times(ours, theirs)

    def _add_times(self, ours: Events, theirs: Events) -> None:
        """Add the times of operators that are the same on both sides."""
        ebpf_ns, callback_ns = durations_ns(ours), durations_ns(theirs)
        sums = int(ebpf_ns.sum()), int(callback_ns.sum())
        phase = self._phase_at(int(theirs["end_ns"][-1]))
        for agreement in (self._total, self._phases.setdefault(phase, TimesAgreement(name=phase))):
            agreement.add(ours.size, *sums)
        nodes = _nodes(self._callback, theirs)
        for node, one, other in zip(nodes, ebpf_ns.tolist(), callback_ns.tolist(), strict=True):
            op = node.op if node else "?"
            self._ops.setdefault(op, TimesAgreement(name=op)).add(1, one, other)

    def _phase_at(self, ns: int) -> str:
        phases = self._callback.of(EventKind.PHASE)
        around = phases[(phases["start_ns"] <= ns) & (phases["end_ns"] >= ns) & (phases["iteration"] != NOTHING)]
        return self._callback.phases[int(around["value"][0])] if around.size else ""


def _by_evaluation(operators: Events) -> dict[int, Events]:
    """Return the operators of each evaluation in the order of their starts."""
    order = np.argsort(operators["evaluation"], kind="stable")
    grouped = operators[order]
    numbers, first = np.unique(grouped["evaluation"], return_index=True)
    parts = np.split(grouped, first[1:])
    return {int(number): part for number, part in zip(numbers, parts, strict=True) if number != NOTHING}


def _nodes(trace: EngineTrace, operators: Events) -> list[Node | None]:
    """Return the node of each operator, None where it is not known."""
    return [
        trace.graphs[graph][node] if graph != NOTHING and node != NOTHING else None
        for graph, node in zip(operators["graph"].tolist(), operators["node"].tolist(), strict=True)
    ]


def _difference(ours: Sequence[Node | None], theirs: Sequence[Node | None]) -> str | None:
    """Say where two sequences of operators part; None where they are the same."""
    for place, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if _told(one) != _told(other):
            return f"operator {place} is {_told(one)} of the eBPF recorder, {_told(other)} of the callback recorder"
    if len(ours) != len(theirs):
        return f"{len(ours)} operators of the eBPF recorder, {len(theirs)} of the callback recorder"
    return None


def _told(node: Node | None) -> str:
    if node is None:
        return "an unknown one"
    return f"{node.tensor.name} ({node.ops} {list(node.tensor.ne)})"
