"""Operators by role."""

from __future__ import annotations

import pytest

from perfsuite.report.graph.roles import role_totals, sibling_totals
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.testing.large_trace import large_trace
from perfsuite.trace.graph.operators import operator_graph


def test_roles_sum_to_the_whole() -> None:
    """Times, shares, bytes and counters are those of the graph, the longest first; what was not measured is none."""
    graph = operator_graph(large_trace(2000))
    totals = role_totals(graph)
    assert sum(each.time_ns or 0 for each in totals) == pytest.approx(graph.serial_ns)
    assert sum(each.share_ratio or 0 for each in totals) == pytest.approx(1)
    assert sum(each.n for each in totals) == len(graph.operators)
    assert sum(each.n_critical for each in totals) == len(graph.critical)
    times = [each.time_ns or 0 for each in totals]
    assert times == sorted(times, reverse=True)
    assert {each.n for each in totals if each.role in ("Qcur", "ffn_out", "attn_norm")} == {30}
    total = next(each for each in role_totals(graph) if each.role == "ffn_up")
    own = [each for each in graph.operators if each.role == "ffn_up"]
    assert total.bytes_per_s == pytest.approx(sum(each.n_bytes or 0 for each in own) * 1e9 / (total.time_ns or 1))
    assert total.counters[0] == sum(each.counters[0] or 0 for each in own)
    first = role_totals(operator_graph(engine_trace([])))[0]
    assert (first.time_ns, first.share_ratio, first.bytes_per_s) == (None, None, None)


def test_siblings_of_all_layers_are_one_row() -> None:
    """Q, K and V of 30 layers, then gate and up, with what they would save together."""
    graph = operator_graph(large_trace(2000))
    totals = sibling_totals(graph)
    assert [(each.shared, each.roles, each.n) for each in totals] == [
        ("attn_norm", ("Qcur", "Kcur", "Vcur"), 30),
        ("ffn_norm", ("ffn_gate", "ffn_up"), 30),
    ]
    assert sum(each.saving_ns for each in totals) == pytest.approx(sum(each.saving_ns for each in graph.siblings))
