"""Gathers what the replicates of a run show beside their samples, and keeps no record of any of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median

from perfsuite.records.engine_columns import Evaluations, evaluations_of
from perfsuite.records.engine_trace import NOTHING, Times
from perfsuite.records.events import GRAPH_PHASES, EngineRecord, Node, Phase, Span
from perfsuite.records.observation import (
    Observation,
    OperatorSpan,
    PhaseGraph,
    PhaseTimeline,
    RoleEdge,
    RoleNode,
    TokenLatency,
)
from perfsuite.trace.graph.edges import sources_of
from perfsuite.trace.operators import recorded_graph, timed_operators

#: More places than this cannot be distinguished in a picture.
MAX_TOKENS = 512


def step_latencies(record: EngineRecord) -> dict[int, int]:
    """Return, by tokens in the context, how long one process's decode step took: the median of its repetitions, ns."""
    durations: dict[int, list[int]] = defaultdict(list)
    for span in record.spans:
        if span.phase is Phase.DECODE:
            durations[span.token].append(span.duration_ns)
    return {n_context: round(median(found)) for n_context, found in durations.items()}


def token_latencies(replicates: Sequence[Mapping[int, int]]) -> tuple[TokenLatency, ...]:
    """Put the steps of several processes side by side; of more than `MAX_TOKENS` places that many are kept.

    Only places that all of them have are shown. They are thinned out evenly: of n places in order, those at
    round(i (n - 1) / (MAX_TOKENS - 1)) for i from 0, so that the first and the last are among them.
    """
    shared = set[int]().union(*replicates[:1]).intersection(*replicates)
    places = sorted(shared)
    if len(places) > MAX_TOKENS:
        step = (len(places) - 1) / (MAX_TOKENS - 1)
        places = [places[round(index * step)] for index in range(MAX_TOKENS)]
    return tuple(
        TokenLatency(n_context=n_context, samples_ns=tuple(each[n_context] for each in replicates))
        for n_context in places
    )


def role_graph(phase: str, operators: Sequence[OperatorSpan], edges: Sequence[RoleEdge]) -> PhaseGraph:
    """Sum the operators of one occurrence of a phase by role, in the order in which roles first run.

    Edges between roles that did not run are left out. What the last layer gives to the next one makes a circle.
    """
    counts = Counter(each.role for each in operators)
    spent_ns: dict[str, int] = defaultdict(int)
    for each in operators:
        spent_ns[each.role] += each.duration_ns
    first = {each.role: each.op for each in reversed(operators)}
    nodes = [RoleNode(role=role, op=first[role], n_operators=counts[role], time_ns=spent_ns[role]) for role in counts]
    known = tuple(each for each in edges if each.source in counts and each.target in counts)
    return PhaseGraph(phase=phase, nodes=tuple(nodes), edges=known)


def role_edges(graphs: Sequence[Sequence[Node]]) -> tuple[RoleEdge, ...]:
    """Return who reads what whom computes, by role, over all graphs of a phase; each pair once.

    A source that is a view, or has no name, stands for the operator that wrote the memory that it shows.
    """
    pairs = dict.fromkeys(pair for graph in graphs for pair in _pairs(graph))
    return tuple(RoleEdge(source=source, target=target) for source, target in pairs)


def _pairs(graph: Sequence[Node]) -> Iterator[tuple[str, str]]:
    recorded = recorded_graph(graph)
    named = zip(timed_operators(graph), recorded.places.values(), strict=True)
    roles = [operator.role for operator, place in named if place != NOTHING]
    yield from ((roles[writer], roles[reader]) for writer, reader in sources_of(recorded.nodes).reads)


#: More operators than this cannot be distinguished in a picture.
MAX_OPERATORS = 4096

_Name = tuple[str, str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Occurrence:
    """One occurrence of a phase; its operators as numbers."""

    #: The time of the phase in its replicate, ns: the median over all occurrences.
    phase_ns: float
    n_tokens: int
    duration_ns: int
    names: tuple[_Name, ...]
    starts_ns: Times
    durations_ns: Times


@dataclass(kw_only=True)
class EngineObserver:
    """Takes the records of valid replicates one by one."""

    #: The length of the prefill to show, where there are several.
    n_prompt: int
    _steps: list[dict[int, int]] = field(default_factory=list)
    _shown: dict[Phase, list[_Occurrence]] = field(default_factory=lambda: {phase: [] for phase in GRAPH_PHASES})
    #: By phase, of the first replicate: the graph of all is the same.
    _edges: dict[Phase, tuple[RoleEdge, ...]] = field(default_factory=dict)
    #: Equal names are kept once.
    _names: dict[tuple[_Name, ...], tuple[_Name, ...]] = field(default_factory=dict)

    def add(self, record: EngineRecord) -> None:
        """Take what must be shown of one replicate."""
        self._steps.append(step_latencies(record))
        evaluations = evaluations_of(record)
        for phase in GRAPH_PHASES if evaluations else ():
            spans = [span for span in record.spans if span.phase is phase]
            if span := _shown_span(spans, self.n_prompt):
                phase_ns = median(each.duration_ns for each in spans)
                self._shown[phase].append(self._occurrence(span, phase_ns, record, evaluations))
                if phase not in self._edges:
                    within = evaluations.graph[evaluations.within(span.start_ns, span.end_ns)].tolist()
                    self._edges[phase] = role_edges([record.graphs[number] for number in dict.fromkeys(within)])

    def observation(self) -> Observation:
        """Return the tokens of all replicates, and the operators of the one whose phase took the median time.

        For an even number of replicates it is the faster one of the middle two. A replicate's decode step is the one in
        the middle of the generation; of several repetitions the one of the median time is shown. Of more than
        `MAX_OPERATORS` operators the shortest are left out of the timeline; the graph counts all of them.
        """
        in_order = {phase: sorted(found, key=lambda each: each.phase_ns) for phase, found in self._shown.items()}
        shown = {phase: found[(len(found) - 1) // 2] for phase, found in in_order.items() if found}
        spans = {phase: tuple(_operator_spans(each)) for phase, each in shown.items()}
        return Observation(
            tokens=token_latencies(self._steps),
            timelines=tuple(
                PhaseTimeline(
                    phase=phase.value,
                    n_tokens=each.n_tokens,
                    duration_ns=each.duration_ns,
                    operators=_longest(spans[phase]),
                )
                for phase, each in shown.items()
            ),
            graphs=tuple(role_graph(phase.value, spans[phase], self._edges[phase]) for phase in shown),
        )

    def _occurrence(self, span: Span, phase_ns: float, record: EngineRecord, evaluations: Evaluations) -> _Occurrence:
        names: list[_Name] = []
        shown: list[int] = []
        for each in evaluations.within(span.start_ns, span.end_ns):
            at = evaluations.ends(each)
            operators = timed_operators(record.graphs[evaluations.graph[each]])[: at.stop - at.start]
            names += ((operator.role, operator.op, operator.layer) for operator in operators)
            shown += range(at.start, at.start + len(operators))
        starts_ns = evaluations.starts_ns[shown]
        return _Occurrence(
            phase_ns=phase_ns,
            n_tokens=span.n_tokens,
            duration_ns=span.duration_ns,
            names=self._names.setdefault(tuple(names), tuple(names)),
            starts_ns=starts_ns - span.start_ns,
            durations_ns=evaluations.ends_ns[shown] - starts_ns,
        )


def _shown_span(spans: Sequence[Span], n_prompt: int) -> Span | None:
    """Return the prefill of the length, or the decode step in the middle, of the repetition with the median time."""
    if spans and spans[0].phase is Phase.DECODE:
        found = [list(steps) for _, steps in groupby(spans, key=lambda each: each.repetition)]
        spans = [steps[(len(steps) - 1) // 2] for steps in found]
    alike = [span for span in spans if span.n_tokens == n_prompt] or spans
    ordered = sorted(alike, key=lambda each: each.duration_ns)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _operator_spans(occurrence: _Occurrence) -> Iterator[OperatorSpan]:
    rows = zip(occurrence.names, occurrence.starts_ns.tolist(), occurrence.durations_ns.tolist(), strict=True)
    for (role, op, layer), start_ns, duration_ns in rows:
        yield OperatorSpan(role=role, op=op, layer=layer, start_ns=start_ns, duration_ns=duration_ns)


def _longest(operators: tuple[OperatorSpan, ...]) -> tuple[OperatorSpan, ...]:
    if len(operators) <= MAX_OPERATORS:
        return operators
    by_time = sorted(range(len(operators)), key=lambda place: operators[place].duration_ns, reverse=True)
    return tuple(operators[place] for place in sorted(by_time[:MAX_OPERATORS]))
