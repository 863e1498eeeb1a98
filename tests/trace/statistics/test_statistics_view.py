"""The statistics of a whole trace."""

from __future__ import annotations

from perfsuite.testing.engine_traces import engine_trace, small_trace
from perfsuite.testing.large_trace import large_trace
from perfsuite.trace.statistics.statistics_view import trace_statistics

from ...synthetic_statistics import experts_of


def test_every_part_of_a_trace_is_shown() -> None:
    found = trace_statistics(small_trace())
    assert (found.n_operators, found.n_lost, found.cut) == (12, 0, None)
    assert {each.op for each in found.operators} == {"RMS_NORM+MUL", "MUL_MAT", "ADD"}
    assert [each.tid for each in found.threads] == [4711, 4712]
    assert {each.role for each in found.balances} == {"attn_norm", "Qcur", "Kcur", "sum"}
    assert found.tokens.steps.context.tolist() == [1, 2, 3]
    found = trace_statistics(large_trace(30_000))
    assert sum(each.n for each in found.operators) == found.n_operators
    assert sum(each.n_operators for each in found.threads) == 2 * found.n_operators


def test_parts_that_were_not_recorded_are_empty() -> None:
    """Choices alone give reuse and no time; no events give empty parts."""
    experts = experts_of([(0, 0, [[1, 2]]), (1, 0, [[1, 3]])])
    found = trace_statistics(engine_trace(graphs=(), experts=experts, n_experts=4))
    assert (len(found.layers), len(found.experts), found.experts[1].time_ns) == (1, 4, None)
    found = trace_statistics(engine_trace(graphs=()))
    assert (found.operators, found.threads, found.balances, found.experts) == ((), (), (), ())
    assert found.tokens.line is None
