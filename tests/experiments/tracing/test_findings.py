"""What a trace says of the cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.experiments.tracing.findings import trace_findings
from perfsuite.records.events import Phase
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve
from tests.synthetic_statistics import attention, experts_of, law_trace, product, step_events


def workload() -> LlamaWorkload:
    return llama_workload(resolve("smollm2-135m-l2-q8_0", cache_dir=Path("nowhere")), find_scenario("siso"))


GRAPH = (product("Qcur", 64, 64), attention(256))


def test_contexts_and_attention_go_together() -> None:
    trace = law_trace(GRAPH, 3, lambda step, position, _thread: 1_000 + 10 * step * position)
    found = trace_findings(trace, workload(), n_threads=2)
    assert found.contexts == (1, 2, 3)
    assert found.attention_ns == (1_000, 1_010, 1_020)
    assert found.decode_ns["Qcur", 0] == 1_000
    assert found.balances[Phase.DECODE, "Qcur"].balance_ratio == 1.0
    assert (found.has_ends, found.complaint) == (True, None)


def test_a_prefill_s_operators_are_not_decode_s() -> None:
    events = [*step_events(0, lambda *_: 90_000, 2, n_tokens=5), *step_events(1, lambda *_: 1_000, 2)]
    found = trace_findings(engine_trace(events, graphs=(GRAPH,)), workload(), n_threads=2)
    assert found.decode_ns["Qcur", 0] == 1_000
    assert found.contexts == (6,)
    empty = trace_findings(engine_trace(graphs=()), workload(), n_threads=2)
    assert (empty.contexts, empty.attention_ns, empty.layers, empty.has_ends) == ((), (), (), False)


def test_the_experts_are_those_of_the_longest_stretch() -> None:
    tokens = [1, 1, 5, 1, 1, 1]
    events = [each for at, n in enumerate(tokens) for each in step_events(at, lambda *_: 1_000, 1, n_tokens=n)]
    experts = experts_of((at, 0, [[at % 4, 5]] * n) for at, n in enumerate(tokens))
    trace = engine_trace(events, graphs=(GRAPH,), experts=experts, n_experts=8)
    found = trace_findings(trace, workload(), n_threads=2)
    assert found.n_stretch_steps == 3
    assert found.layers[0].batches() == ((3, 5), (0, 5), (1, 5))


@pytest.mark.parametrize(
    ("holes", "complaint", "told"),
    [
        ({"n_lost": 3}, None, "3 events of the trace were lost"),
        ({"cut": "at byte 7"}, None, "the trace breaks off: at byte 7"),
        ({"n_lost": 3}, "throttled", "throttled"),
    ],
)
def test_lost_events_and_a_cut_are_complaints(holes: dict[str, Any], complaint: str | None, told: str) -> None:
    trace = engine_trace(graphs=(GRAPH,), **holes)
    assert trace_findings(trace, workload(), n_threads=2, complaint=complaint).complaint == told
