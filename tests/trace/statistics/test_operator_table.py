"""The table of a trace's operators."""

from __future__ import annotations

from perfsuite.records.events import Phase
from perfsuite.testing.engine_traces import engine_trace, small_graph
from perfsuite.trace.statistics.operator_runs import operator_runs
from perfsuite.trace.statistics.operator_table import operator_table

from ...synthetic_statistics import product, step_events


def test_runs_find_their_operator_across_graphs() -> None:
    """The second graph's nodes lie behind the first's, and each run gets the label of its own operator and phase."""
    law = lambda *_: 1_000  # noqa: E731
    events = [*step_events(0, law, 4, n_tokens=8), *step_events(1, law, 1, graph=1)]
    trace = engine_trace(events, graphs=(small_graph(), (product("ffn_up", 64, 64),)))
    table, runs = operator_table(trace), operator_runs(trace)
    labels, of_run = table.labelled(runs, lambda operator, phase: (operator.role, phase))
    assert [labels[each] for each in of_run] == [
        *((role, Phase.PREFILL) for role in ("attn_norm", "Qcur", "Kcur", "sum")),
        ("ffn_up", Phase.DECODE),
    ]


def test_equal_labels_are_one() -> None:
    """Runs of different operators with the same label share it."""
    law = lambda *_: 1_000  # noqa: E731
    trace = engine_trace(step_events(0, law, 4))
    labels, of_run = operator_table(trace).labelled(operator_runs(trace), lambda operator, _: operator.op)
    assert labels == ("RMS_NORM+MUL", "MUL_MAT", "ADD")
    assert of_run.tolist() == [0, 1, 1, 2]


def test_a_trace_without_operators_has_an_empty_table() -> None:
    """No graph gives no rows and no labels."""
    trace = engine_trace(graphs=())
    table = operator_table(trace)
    labels, of_run = table.labelled(operator_runs(trace), lambda operator, _: operator.op)
    assert (table.operators, labels, of_run.size) == ((), (), 0)
