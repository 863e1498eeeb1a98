"""Steps and the context that they see."""

from __future__ import annotations

import pytest

from perfsuite.records.engine_trace import EngineTrace, EventKind
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table
from perfsuite.trace.statistics.step_contexts import Steps, steps_of

from ...synthetic_statistics import attention, product, step_events


def steps_trace(steps: list[tuple[int, int]], *, is_called: bool = True) -> EngineTrace:
    """Return steps of (tokens, positions that attention works on)."""
    graphs = tuple((product("Qcur", 64, 64, n_tokens=n), attention(visible, n_tokens=n)) for n, visible in steps)
    events = [
        each
        for number, (n_tokens, _) in enumerate(steps)
        for each in step_events(number, lambda *_: 1_000, 2, n_tokens=n_tokens, graph=number)
        if is_called or each["kind"][0] != EventKind.TOKEN
    ]
    return engine_trace(events, graphs=graphs)


def found_steps(trace: EngineTrace) -> Steps:
    """Return the steps of a trace."""
    return steps_of(trace, operator_runs(trace), operator_table(trace))


@pytest.mark.parametrize(
    ("steps", "contexts"),
    [
        ([(8, 256), (1, 256), (1, 256)], [8, 9, 10]),
        ([(8, 256), (1, 256), (8, 256), (1, 256)], [8, 9, 8, 9]),
        ([(300, 512), (1, 512), (300, 768), (1, 768)], [300, 301, 601, 602]),
        ([(512, 512), (512, 1024), (512, 512)], [512, 1024, 512]),
        ([(250, 256), (1, 256), (1, 256), (10, 512), (1, 512)], [250, 251, 252, 262, 263]),
    ],
    ids=["one run", "a new prompt", "a conversation", "prompts alone", "a short addition"],
)
def test_the_context_is_counted_until_it_begins_anew(steps: list[tuple[int, int]], contexts: list[int]) -> None:
    """Tokens add up; a prompt behind a decode begins anew unless attention works on more than it needs."""
    assert found_steps(steps_trace(steps)).context.tolist() == contexts


def test_without_calls_the_evaluations_are_the_steps() -> None:
    """Tokens are then those of graphs, times those of operators; recorded calls have their own."""
    steps = found_steps(steps_trace([(8, 256), (1, 256)], is_called=False))
    assert (steps.n_tokens.tolist(), steps.duration_ns.tolist()) == ([8, 1], [2_000, 2_000])
    assert (steps.is_decode.tolist(), found_steps(steps_trace([(1, 256)])).duration_ns.tolist()) == ([1], [4_000])
    assert found_steps(engine_trace(graphs=())).number.size == 0
