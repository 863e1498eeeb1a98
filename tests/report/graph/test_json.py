"""Graphs as JSON."""

from __future__ import annotations

import json

import pytest

from perfsuite.report.graph.json import plain_graphs
from perfsuite.report.graph.view import graph_view
from perfsuite.testing.engine_traces import engine_trace, small_trace
from perfsuite.testing.large_trace import large_trace


def test_the_whole_graph_is_there() -> None:
    """All nodes, edges, the critical path and the siblings, however much is drawn."""
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


def test_what_is_not_known_is_null() -> None:
    """Times of a graph that never ran."""
    (plain,) = plain_graphs([graph_view(engine_trace([]))])["graphs"]
    assert (plain["serial_ns"], plain["critical_ns"], plain["wall_ns"], plain["gain_ratio"]) == (None,) * 4
    assert plain["nodes"][0]["time_ns"] is None
    assert json.dumps(plain, allow_nan=False)


def test_edges_say_how_they_were_found() -> None:
    """By addresses, where those were read."""
    (plain,) = plain_graphs([graph_view(small_trace())])["graphs"]
    assert (plain["edges_by"], plain["edges"]) == ("address", [[0, 1], [0, 2], [1, 3], [2, 3]])
