"""Graphs on the terminal."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from perfsuite.report.graph.tables import graph_tables, plain_graphs, role_totals
from perfsuite.report.graph.view import GraphView, graph_view
from perfsuite.report.sheet import Sheet
from perfsuite.testing.engine_traces import engine_trace, node, small_trace, tensor
from perfsuite.testing.large_trace import large_trace
from perfsuite.trace.graph.operators import operator_graph


def test_roles_sum_to_the_whole() -> None:
    graph = operator_graph(large_trace(2000))
    totals = role_totals(graph)
    assert sum(each.time_ns or 0 for each in totals) == pytest.approx(graph.serial_ns)
    assert sum(each.share_ratio or 0 for each in totals) == pytest.approx(1)
    assert sum(each.n for each in totals) == len(graph.operators)
    assert sum(each.n_critical for each in totals) == len(graph.critical)
    assert {each.n for each in totals if each.role in ("Qcur", "ffn_out", "attn_norm")} == {30}
    total = next(each for each in role_totals(graph) if each.role == "ffn_up")
    own = [each for each in graph.operators if each.role == "ffn_up"]
    assert total.bytes_per_s == pytest.approx(sum(each.n_bytes or 0 for each in own) * 1e9 / (total.time_ns or 1))
    assert total.counters["cycles"] == sum(each.counters[0] or 0 for each in own)


def test_the_whole_graph_is_there() -> None:
    """All nodes, edges, the critical path and the siblings, however much is drawn; what is not known is null."""
    text = json.dumps(plain_graphs([graph_view(large_trace(2000))]))
    (plain,) = json.loads(text)["graphs"]
    assert len(plain["nodes"]) == 513
    assert len(plain["siblings"]) == 60
    assert plain["critical_path"][-1] == 512
    assert plain["gain_ratio"] == pytest.approx(plain["serial_ns"] / plain["critical_ns"])
    assert plain["constants"]["n_weights"] == 272
    assert [0, 1] in plain["edges"]
    query = plain["nodes"][2]
    assert (query["name"], query["role"], query["layer"], query["op"]) == ("Qcur-0", "Qcur", 0, "MUL_MAT")
    assert set(query["counters"]) == {"cycles", "page-faults"}
    assert sum(each["n"] for each in plain["roles"]) == 513
    (plain,) = plain_graphs([graph_view(engine_trace([]))])["graphs"]
    assert (plain["serial_ns"], plain["critical_ns"], plain["wall_ns"], plain["gain_ratio"]) == (None,) * 4


def printed(views: list[GraphView], n_top: int = 15) -> str:
    out = io.StringIO()
    for each in graph_tables(views, n_top):
        if isinstance(each, Sheet):
            Console(file=out, width=200).print(each.table())
        else:
            print(each, file=out)
    return out.getvalue()


def test_a_graph_has_roles_and_siblings() -> None:
    told = printed([graph_view(large_trace(2000))])
    assert told.startswith("model.gguf\n  graph 0, decode, 513 operators on CPU")
    assert "Operators: the 15 of " in told
    row = next(line for line in told.splitlines() if line.startswith("attn_norm  Qcur, Kcur, Vcur")).split()
    assert row[4] == "30"
    assert row[-1].endswith("%")
    columns = next(line for line in told.splitlines() if line.startswith("role ")).split()
    assert columns == ["role", "operation", "n", "critical", "time", "share", "bandwidth", "cycles", "page-faults"]
    assert "Siblings" not in printed([graph_view(engine_trace([]))])
    told = printed([graph_view(engine_trace([], graphs=((node("ADD", tensor("[red]x\x1b[2J")),),)))])
    assert "[red]x�[2J" in told
    assert "\x1b" not in told


def test_two_graphs_are_compared_role_by_role() -> None:
    """The whole, the critical path, the weights, and each role with its change; what only one has has none."""
    other = engine_trace([], graphs=((node("SCALE", tensor("only here")),),))
    told = printed([graph_view(small_trace()), graph_view(small_trace(), title="b"), graph_view(other)])
    rows = {line.split("  ")[0].strip(): line.split() for line in told.partition("Side by side")[2].splitlines()}
    assert rows["all operators"].count("+0.0") == 1
    assert rows["all operators"][-1] == "-"
    assert rows["Qcur MUL_MAT"][2:] == ["12.1", "µs", "1", "12.1", "µs", "1", "+0.0", "%", "-", "-", "-"]
    assert rows["weights"][1:4] == ["32.2", "KiB", "3"]
    assert rows["only here SCALE"][3:] == ["-", "-", "-", "-", "-", "-", "1", "-"]
