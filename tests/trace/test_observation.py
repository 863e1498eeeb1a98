"""What replicates show beside their samples."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from perfsuite.records.events import EngineRecord, Node, Phase, Span, Tensor
from perfsuite.records.observation import (
    NO_OBSERVATION,
    Observation,
    OperatorSpan,
    PhaseTimeline,
    RoleEdge,
    RoleNode,
    TokenLatency,
)
from perfsuite.trace.observation import (
    MAX_TOKENS,
    EngineObserver,
    role_edges,
    role_graph,
    step_latencies,
    token_latencies,
)
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.samples import traced_phases


def _step(token: int, duration_ns: int, repetition: int = 0, phase: Phase = Phase.DECODE) -> Span:
    return Span(phase=phase, repetition=repetition, token=token, n_tokens=1, start_ns=100, end_ns=100 + duration_ns)


def test_a_step_is_the_median_of_its_repetitions(stored_record: EngineRecord) -> None:
    spans = (*(_step(4, time_ns, n) for n, time_ns in enumerate((30, 10, 20))), _step(5, 7), _step(4, 1, 0, Phase.COPY))
    assert step_latencies(replace(stored_record, spans=spans)) == {4: 20, 5: 7}
    found = step_latencies(stored_record)
    assert list(found) == list(range(64, 88))
    spans = [span.duration_ns for span in stored_record.spans if span.phase is Phase.DECODE]
    assert median(found.values()) == median(spans)


def test_replicates_stand_side_by_side() -> None:
    assert token_latencies([{2: 20, 1: 10}, {1: 11, 2: 21, 3: 31}]) == (
        TokenLatency(n_context=1, samples_ns=(10, 11)),
        TokenLatency(n_context=2, samples_ns=(20, 21)),
    )
    assert token_latencies([]) == ()
    found = [each.n_context for each in token_latencies([dict.fromkeys(range(5, 5005), 1)])]
    assert (len(found), found[0], found[-1]) == (MAX_TOKENS, 5, 5004)


def _tensor(name: str, root: int) -> Tensor:
    return Tensor(name=name, type="f32", ne=(4, 1, 1, 1), nb=(4, 16, 16, 16), root=root)


def _node(name: str, root: int, *sources: Tensor) -> Node:
    return Node(tensor=_tensor(name, root), op="ADD", timed=True, fused=False, sources=sources)


def _span(role: str, layer: int | None, duration_ns: int) -> OperatorSpan:
    return OperatorSpan(role=role, op="ADD", layer=layer, start_ns=0, duration_ns=duration_ns)


def _edges(*pairs: tuple[str, str]) -> tuple[RoleEdge, ...]:
    return tuple(RoleEdge(source=source, target=target) for source, target in pairs)


def test_layers_are_one() -> None:
    operators = [_span("b", 0, 5), _span("a", 0, 1), _span("b", 1, 7)]
    graph = role_graph("decode", operators, ())
    assert graph.nodes == (
        RoleNode(role="b", op="ADD", n_operators=2, time_ns=12),
        RoleNode(role="a", op="ADD", n_operators=1, time_ns=1),
    )
    graph = role_graph("decode", [_span("a", 0, 1)], _edges(("a", "a"), ("a", "gone")))
    assert graph.edges == _edges(("a", "a"))


def test_edges_lead_from_who_computes_to_who_reads() -> None:
    graph = [_node("Qcur-0", 1), _node("kqv-0", 2, _tensor(" (view)", 1)), _node("kqv-1", 3, _tensor("", 2))]
    assert role_edges([graph]) == _edges(("Qcur", "kqv"), ("kqv", "kqv"))
    graph = [_node("a-0", 1), _node("b-0", 2, _tensor("a-0", 1)), _node("c-0", 1, _tensor("a-0", 1))]
    assert role_edges([graph]) == _edges(("a", "b"), ("a", "c"))
    graph = [_node("a-0", 1), _node("b-0", 2, _tensor("a-0", 1)), _node("a-1", 3), _node("b-1", 4, _tensor("a-1", 3))]
    assert role_edges([graph, graph]) == _edges(("a", "b"))


def test_a_recorded_graph_is_connected(stored_record: EngineRecord) -> None:
    """In an architecture's real graph every role except the first reads another one, unless names do not show it."""
    edges = role_edges(stored_record.graphs[-1:])
    roles = {operator.role for operator in timed_operators(stored_record.graphs[-1])}
    assert {each.source for each in edges} | {each.target for each in edges} <= roles
    assert roles - {each.target for each in edges} == {"embd", "attn_out"}
    for pair in (("attn_norm", "Qcur"), ("ffn_gate", "ffn_swiglu"), ("l_out", "attn_norm")):
        assert RoleEdge(source=pair[0], target=pair[1]) in edges


def _seen(*records: EngineRecord) -> Observation:
    observer = EngineObserver(n_prompt=64)
    for record in records:
        observer.add(record)
    return observer.observation()


def _timeline(seen: Observation, phase: str) -> PhaseTimeline:
    (found,) = (each for each in seen.timelines if each.phase == phase)
    return found


def _slower(record: EngineRecord, extra_ns: int) -> EngineRecord:
    spans = [replace(span, end_ns=span.end_ns + extra_ns) for span in record.spans if span.phase is Phase.PREFILL]
    others = [span for span in record.spans if span.phase is not Phase.PREFILL]
    return replace(record, spans=(*spans, *others))


def test_without_replicates_nothing_is_seen(stored_record: EngineRecord) -> None:
    assert _seen() == NO_OBSERVATION
    seen = _seen(replace(stored_record, graphs=(), events=b""))
    assert (seen.timelines, seen.graphs, len(seen.tokens)) == ((), (), 24)


def test_operators_are_shown_in_the_order_of_time(stored_record: EngineRecord) -> None:
    prefill = _timeline(_seen(stored_record), "prefill")
    assert prefill.n_tokens == 64
    assert [(each.role, each.op, each.layer) for each in prefill.operators[:3]] == [
        ("embd", "GET_ROWS", None),
        ("attn_norm", "RMS_NORM+MUL", 0),
        ("Qcur", "MUL_MAT", 0),
    ]
    ends = [each.start_ns + each.duration_ns for each in prefill.operators]
    assert ends[:-1] == [each.start_ns for each in prefill.operators[1:]]
    assert 0 <= prefill.operators[0].start_ns < ends[-1] <= prefill.duration_ns
    (traced,) = traced_phases(stored_record, Phase.PREFILL)
    assert {node.role: node.time_ns for node in _seen(stored_record).graphs[0].nodes} == traced.role_ns


def test_what_took_the_median_time_is_shown(stored_record: EngineRecord) -> None:
    steps = [span for span in stored_record.spans if span.phase is Phase.DECODE]
    assert _timeline(_seen(stored_record), "decode").duration_ns == steps[11].duration_ns
    delays_ns = (40, 0, 30, 10, 20)
    records = [_slower(stored_record, extra_ns) for extra_ns in delays_ns]
    bare_ns = _timeline(_seen(stored_record), "prefill").duration_ns
    assert _timeline(_seen(*records), "prefill").duration_ns == bare_ns + 20
