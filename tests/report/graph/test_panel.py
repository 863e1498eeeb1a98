"""The space of one graph in a picture."""

from __future__ import annotations

from itertools import pairwise

import pytest

from perfsuite.report.graph.panel import BOX_HEIGHT, BOX_WIDTH, GraphPanel, cut_middle, graph_panel
from perfsuite.report.graph.view import graph_view
from perfsuite.testing.large_trace import large_trace


@pytest.fixture(scope="module")
def panel() -> GraphPanel:
    """Return a decode step's panel."""
    return graph_panel(graph_view(large_trace(2000)))


def test_boxes_do_not_touch(panel: GraphPanel) -> None:
    """Any two are apart to the side or down, and all are within the panel."""
    middles = [panel.middle_of(number) for number in range(len(panel.view.nodes))]
    for number, (x, y) in enumerate(middles):
        assert BOX_WIDTH / 2 <= x <= panel.width - BOX_WIDTH / 2
        assert BOX_HEIGHT / 2 <= y <= panel.body_height - BOX_HEIGHT / 2
        assert all(abs(x - u) > BOX_WIDTH or abs(y - v) > BOX_HEIGHT for u, v in middles[:number])


def test_an_edge_leads_from_foot_to_head(panel: GraphPanel) -> None:
    """It begins at the lower edge of one box and ends at the upper edge of the other, within the panel."""
    for edge in panel.view.edges:
        (x0, y0), (x1, y1) = map(panel.middle_of, edge)
        points = panel.route(edge)
        assert points[0][1] == pytest.approx(y0 + BOX_HEIGHT / 2)
        assert points[-1][1] == pytest.approx(y1 - BOX_HEIGHT / 2)
        assert abs(points[0][0] - x0) < BOX_WIDTH / 2
        assert abs(points[-1][0] - x1) < BOX_WIDTH / 2
        assert all(0 <= x <= panel.width for x, _ in points)


def test_no_edge_runs_through_a_box(panel: GraphPanel) -> None:
    """Along each straight piece no point lies in a box."""
    middles = [panel.middle_of(number) for number in range(len(panel.view.nodes))]
    for edge in panel.view.edges:
        points = panel.route(edge)
        for (x0, y0), (x1, y1) in pairwise(points):
            for step in range(1, 40):
                x, y = x0 + (x1 - x0) * step / 40, y0 + (y1 - y0) * step / 40
                assert not any(
                    abs(x - u) < BOX_WIDTH / 2 - 1e-6 and abs(y - v) < BOX_HEIGHT / 2 - 1e-6 for u, v in middles
                )


def test_a_text_is_cut_in_its_middle() -> None:
    """Beginning and end stay, and it is as long as it may be."""
    assert cut_middle("ffn_moe_weighted_add-0 (node_46)", 15) == "ffn_moe…ode_46)"
    assert cut_middle("short", 5) == "short"
