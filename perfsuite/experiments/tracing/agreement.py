"""Whether two recorders of one run tell the same: the same operators in the same order, and the same time for them.

Both see thread 0 by the same clock. The callback recorder hears of ends alone, so each operator lasts from the end of
the one before it to its own, and the first from its start; the eBPF recorder's operators are counted in the same way.
That takes an eBPF trace with ENDS: without them, waiting for other threads is reported of another operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Events
from perfsuite.records.events import Node

#: An operator that both recorders timed: phase, kind, and its time by eBPF and by the callback, ns.
_Row: TypeAlias = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesAgreement:
    """What both recorders tell of the time of some operators, in sum."""

    #: A phase, or an operator as ``ggml_op_desc`` spells it; empty for all together.
    name: str
    n_operators: int
    ebpf_ns: int
    callback_ns: int

    @property
    def ratio(self) -> float | None:
        return self.ebpf_ns / self.callback_ns if self.callback_ns else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadAccount:
    """How far the operators of one thread account for the graphs that it computed."""

    #: Position in the eBPF trace's threads.
    thread: int
    #: In operators, and behind each of them until the next operator of the graph begins or the graph ends.
    own_ns: int
    wait_ns: int
    #: From the first operator's begin to the graph's end, of all graphs compared.
    graph_ns: int

    @property
    def accounted_ratio(self) -> float | None:
        """Own and waiting time over that of the graphs: less than 1 where operators are missing."""
        return (self.own_ns + self.wait_ns) / self.graph_ns if self.graph_ns else None


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
        return self.n_evaluations > 0 and not (self.n_callback_only or self.n_ebpf_only or self.n_different)


def recorder_agreement(ebpf: EngineTrace, callback: EngineTrace) -> RecorderAgreement:
    """Compare what the two recorders saw of the same process.

    Raises MeasurementError: one of them has no operators, or no graphs.
    """
    for trace in (ebpf, callback):
        if not trace.of(EventKind.OPERATOR).size or not trace.of(EventKind.GRAPH).size:
            raise MeasurementError(f"the {trace.recorder.value} recorder has no operators, or no graphs, to compare")
    graphs, ours, theirs = ebpf.of(EventKind.GRAPH), _by_evaluation(ebpf), _by_evaluation(callback)
    around = {number: _graph_around(graphs, int(own["end_ns"][-1])) for number, own in theirs.items()}
    matched = {number: graph for number, graph in around.items() if graph is not None}
    n_ebpf = n_callback = 0
    differences, rows, accounts = list[str](), list[_Row](), dict[int, tuple[int, int, int]]()
    for number, graph in matched.items():
        operators = ours.get(int(graph["evaluation"]), graphs[:0])
        n_nodes = len(ebpf.graphs[int(graph["graph"])]) if graph["graph"] != NOTHING else 0
        for thread in np.unique(operators["thread"]).tolist():
            own_ns, wait_ns, graph_ns = _accounted(operators[operators["thread"] == thread], graph, n_nodes)
            before = accounts.get(thread, (0, 0, 0))
            accounts[thread] = before[0] + own_ns, before[1] + wait_ns, before[2] + graph_ns
        one = operators[operators["thread"] == graph["thread"]]
        other = theirs[number][theirs[number]["thread"] == 0]
        n_ebpf, n_callback = n_ebpf + one.size, n_callback + other.size
        nodes = _nodes(callback, other)
        if difference := _difference(_nodes(ebpf, one), nodes):
            differences.append(f"evaluation {number}: {difference}")
        elif not (one["end_ns"] == NOTHING).any():
            phase = _phase_at(callback, int(other["end_ns"][-1]))
            times = zip(nodes, _durations_ns(one), _durations_ns(other), strict=True)
            rows += [(phase, node.op if node else "?", ebpf_ns, callback_ns) for node, ebpf_ns, callback_ns in times]
    return RecorderAgreement(
        n_evaluations=len(matched),
        n_callback_only=len(around) - len(matched),
        n_ebpf_only=int(graphs.size) - len(matched),
        n_ebpf=n_ebpf,
        n_callback=n_callback,
        n_different=len(differences),
        first_difference=differences[0] if differences else None,
        total=_times("", rows),
        phases=tuple(_sums(rows, 0, dict.fromkeys(each[0] for each in rows))),
        ops=tuple(_sums(rows, 1, sorted({each[1] for each in rows}))),
        threads=tuple(
            ThreadAccount(thread=thread, own_ns=own_ns, wait_ns=wait_ns, graph_ns=graph_ns)
            for thread, (own_ns, wait_ns, graph_ns) in sorted(accounts.items())
        ),
    )


def _graph_around(graphs: Events, ended_ns: int) -> np.void | None:
    before = int(np.searchsorted(graphs["start_ns"], ended_ns, side="right")) - 1
    if before < 0 or not graphs["start_ns"][before] <= ended_ns <= graphs["end_ns"][before]:
        return None
    graph: np.void = graphs[before]
    return graph


def _accounted(operators: Events, graph: np.void, n_nodes: int) -> tuple[int, int, int]:
    """Return own, waiting and whole time of a thread in a graph of so many nodes.

    The time behind an operator whose follower is missing counts for nothing.
    """
    known = operators[operators["end_ns"] != NOTHING]
    if not known.size:
        return 0, 0, 0
    begin_ns = int(known["start_ns"][0] if known["node"][0] == 0 else graph["start_ns"])
    next_ns = np.append(known["start_ns"][1:], graph["end_ns"])
    follows = np.append(np.diff(known["node"]) == 1, known["node"][-1] == n_nodes - 1)
    wait_ns = np.where(follows, next_ns - known["end_ns"], 0).sum()
    return int((known["end_ns"] - known["start_ns"]).sum()), int(wait_ns), int(graph["end_ns"]) - begin_ns


def _sums(rows: Sequence[_Row], column: int, names: Iterable[str]) -> Iterator[TimesAgreement]:
    yield from (_times(name, [each for each in rows if each[column] == name]) for name in names)


def _times(name: str, rows: Sequence[_Row]) -> TimesAgreement:
    ebpf_ns = sum(each[2] for each in rows)
    return TimesAgreement(name=name, n_operators=len(rows), ebpf_ns=ebpf_ns, callback_ns=sum(each[3] for each in rows))


def _durations_ns(operators: Events) -> list[int]:
    """Return the time from each operator's predecessor's end to its own end; of the first from its start."""
    durations: list[int] = np.diff(np.append(operators["start_ns"][:1], operators["end_ns"])).tolist()
    return durations


def _phase_at(trace: EngineTrace, ns: int) -> str:
    phases = trace.of(EventKind.PHASE)
    around = phases[(phases["start_ns"] <= ns) & (phases["end_ns"] >= ns) & (phases["iteration"] != NOTHING)]
    return trace.phases[int(around["value"][0])] if around.size else ""


def _by_evaluation(trace: EngineTrace) -> dict[int, Events]:
    """Return the operators of each evaluation in the order of their starts."""
    operators = trace.of(EventKind.OPERATOR)
    grouped = operators[np.argsort(operators["evaluation"], kind="stable")]
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
    for place, pair in enumerate(zip(ours, theirs, strict=False)):
        one, other = (
            f"{node.tensor.name} ({node.ops} {list(node.tensor.ne)})" if node else "an unknown one" for node in pair
        )
        if one != other:
            return f"operator {place} is {one} of the eBPF recorder, {other} of the callback recorder"
    if len(ours) != len(theirs):
        return f"{len(ours)} operators of the eBPF recorder, {len(theirs)} of the callback recorder"
    return None
