"""Growth over the context."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.records.engine_trace import EngineTrace, EventKind
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table
from perfsuite.trace.statistics.token_statistics import (
    Steps,
    TokenStatistics,
    steps_of,
    token_statistics,
)

from ...synthetic_statistics import Law, attention, law_trace, product, step_events


def steps_trace(steps: list[tuple[int, int]], *, is_called: bool = True) -> EngineTrace:
    graphs = tuple((product("Qcur", 64, 64, n_tokens=n), attention(visible, n_tokens=n)) for n, visible in steps)
    events = [
        each
        for number, (n_tokens, _) in enumerate(steps)
        for each in step_events(number, lambda *_: 1_000, 2, n_tokens=n_tokens, graph=number)
        if is_called or each["kind"][0] != EventKind.TOKEN
    ]
    return engine_trace(events, graphs=graphs)


def found_steps(trace: EngineTrace) -> Steps:
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
    steps = found_steps(steps_trace([(8, 256), (1, 256)], is_called=False))
    assert (steps.n_tokens.tolist(), steps.duration_ns.tolist()) == ([8, 1], [2_000, 2_000])
    assert (steps.is_decode.tolist(), found_steps(steps_trace([(1, 256)])).duration_ns.tolist()) == ([1], [4_000])
    assert found_steps(engine_trace(graphs=())).number.size == 0


GRAPH = (product("Qcur", 64, 64), attention(256), product("ffn_up", 64, 128))


def statistics(trace: EngineTrace) -> TokenStatistics:
    runs, table = operator_runs(trace), operator_table(trace)
    return token_statistics(steps_of(trace, runs, table), runs, table)


def growing(ns_per_step: dict[int, int]) -> Law:
    return lambda step, position, _thread: 5_000 + step * ns_per_step.get(position, 0)


def test_the_growth_and_its_carriers_are_found() -> None:
    """A step grows by what its operators grow by; attention carries 40 of 50 ns, the product the rest."""
    found = statistics(law_trace(GRAPH, 40, growing({1: 40, 2: 10})))
    assert found.line is not None
    assert found.line.slope_ns == pytest.approx(50.0)
    first, second = found.growth[:2]
    assert (first.role, first.line.slope_ns, first.share_ratio) == ("flash_attn_ext", pytest.approx(40), 0.8)
    assert (second.role, second.share_ratio) == ("ffn_up", pytest.approx(0.2))
    assert found.attention_share_ratio == pytest.approx(0.8)


def test_a_level_decode_has_no_shares() -> None:
    found = statistics(law_trace(GRAPH, 40, growing({})))
    assert found.line is not None
    assert found.line.slope_ns == 0.0
    assert found.attention_share_ratio is None
    assert statistics(law_trace(GRAPH, 3, growing({1: 40}))).line is None
    prompts = law_trace(GRAPH, 40, growing({1: 40}), n_tokens=5)
    assert statistics(prompts).line is None


def test_a_noisy_step_does_not_blur_its_operators() -> None:
    """Time outside of operators moves the step and not the shares of its roles."""
    trace = law_trace(GRAPH, 40, growing({1: 40, 2: 10}))
    calls = trace.events["kind"] == EventKind.TOKEN
    trace.events["end_ns"][calls] += np.random.default_rng(1).integers(0, 50_000, int(calls.sum()))
    found = statistics(trace)
    assert (found.growth_ns, found.attention_share_ratio) == (pytest.approx(50.0), pytest.approx(0.8))
