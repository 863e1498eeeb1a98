"""The folded graph of a phase."""

from __future__ import annotations

import itertools

from perfsuite.records.observation import Observation, PhaseGraph, RoleEdge, RoleNode
from perfsuite.report.page.charts.folded_graph import graph_figures
from perfsuite.testing.run_files import synthetic_observation, synthetic_run


def graph(times_ns: dict[str, int], *edges: str) -> Observation:
    """A graph of roles of one letter, with edges of two."""
    nodes = tuple(RoleNode(role=role, op="ADD", n_operators=2, time_ns=time) for role, time in times_ns.items())
    found = tuple(RoleEdge(source=edge[0], target=edge[1]) for edge in edges)
    return Observation(graphs=(PhaseGraph(phase="decode", nodes=nodes, edges=found),))


def test_no_two_boxes_lie_upon_each_other() -> None:
    """Each has a place of its own, inside the picture."""
    for figure in graph_figures(synthetic_observation(synthetic_run())):
        boxes = next(layer["data"]["values"] for layer in figure.spec["layer"] if "tint" in layer["data"]["values"][0])
        low, high = figure.spec["encoding"]["x"]["scale"]["domain"]
        assert all(low <= each["left"] < each["right"] <= high for each in boxes)
        for one, other in itertools.combinations(boxes, 2):
            apart_x = one["right"] <= other["left"] or other["right"] <= one["left"]
            assert apart_x or one["bottom"] <= other["top"] or other["bottom"] <= one["top"]


def test_an_edge_leads_from_below_one_box_to_above_the_other() -> None:
    """What reads lies below what is read; the longest bar is that of the most expensive role."""
    (figure,) = graph_figures(graph({"a": 10, "b": 30}, "ab"))
    start, end = figure.spec["layer"][0]["data"]["values"]
    assert (start["y"], end["y"]) == (0.3, 0.7)
    assert "is_end" in end
    first, second = figure.spec["layer"][2]["data"]["values"]
    assert (first["share"], second["share"]) == ("25 %", "75 %")
    assert second["part"] == second["right"]
    assert first["part"] < first["right"]
    assert second["tint"] > first["tint"]


def test_an_edge_to_the_next_layer_is_counted_and_not_drawn() -> None:
    """Folding makes circles; unknown ends are left out, and one role alone is drawn."""
    (figure,) = graph_figures(graph({"a": 1, "b": 1}, "ab", "ba", "ax"))
    assert "1 edge; " in figure.summary
    assert "1 edge to the next layer not drawn" in figure.summary
    (figure,) = graph_figures(graph({"a": 0}))
    assert len(figure.spec["layer"]) == 4
    assert not list(graph_figures(graph({})))
