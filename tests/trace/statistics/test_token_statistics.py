"""Growth over the context."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.records.engine_trace import EngineTrace, EventKind
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table
from perfsuite.trace.statistics.step_contexts import steps_of
from perfsuite.trace.statistics.token_statistics import TokenStatistics, is_attention, token_statistics

from ...synthetic_statistics import Law, attention, law_trace, product

GRAPH = (product("Qcur", 64, 64), attention(256), product("ffn_up", 64, 128))


def statistics(trace: EngineTrace) -> TokenStatistics:
    """Return the statistics across the tokens of a trace."""
    runs, table = operator_runs(trace), operator_table(trace)
    return token_statistics(steps_of(trace, runs, table), runs, table)


def growing(ns_per_step: dict[int, int]) -> Law:
    """Return a law by which some operators take longer with each step."""
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
    """Where nothing grows nothing carries it; three steps make no line, and prefills are none."""
    found = statistics(law_trace(GRAPH, 40, growing({})))
    assert found.line is not None
    assert found.line.slope_ns == 0.0
    assert found.attention_share_ratio is None
    assert statistics(law_trace(GRAPH, 3, growing({1: 40}))).line is None
    assert statistics(law_trace(GRAPH, 40, growing({1: 40}), n_tokens=5)).line is None


def test_a_noisy_step_does_not_blur_its_operators() -> None:
    """Time outside of operators moves the step and not the shares of its roles."""
    trace = law_trace(GRAPH, 40, growing({1: 40, 2: 10}))
    calls = trace.events["kind"] == EventKind.TOKEN
    trace.events["end_ns"][calls] += np.random.default_rng(1).integers(0, 50_000, int(calls.sum()))
    found = statistics(trace)
    assert (found.growth_ns, found.attention_share_ratio) == (pytest.approx(50.0), pytest.approx(0.8))


@pytest.mark.parametrize(("role", "op"), [("kq", "MUL_MAT"), ("kqv", "MUL_MAT"), ("kqv_out", "FLASH_ATTN_EXT")])
def test_attention_is_known_by_role_or_operator(role: str, op: str) -> None:
    """Scores, their mix and the fused operator attend to the cache; other products do not."""
    assert is_attention(role, op)
    assert not is_attention("attn_out", "MUL_MAT")
