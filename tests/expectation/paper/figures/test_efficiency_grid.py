"""Figure 5."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.figures import figure_5
from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.table_row import llama2_7b
from perfsuite.workload.variant import find_variant


@pytest.mark.parametrize("place", [0, 1])
def test_a_cell_is_the_longer_of_two_times(place: int) -> None:
    """Compute efficiency runs along x, memory efficiency along y, on 30 TOPS and 50 GB/s."""
    panel = figure_5().panels[place]
    cost = prefill_pass(llama2_7b(), find_variant(panel.title), 4096).total
    for memory_pct, row in zip(panel.y, panel.values, strict=True):
        for compute_pct, value in zip(panel.x, row, strict=True):
            compute_s = cost.flops / (compute_pct / 100 * 30e12)
            memory_s = cost.moved_bytes / (memory_pct / 100 * 50e9)
            assert value == pytest.approx(max(compute_s, memory_s))


def test_on_the_line_both_times_are_equal() -> None:
    """Above it more memory efficiency gains nothing, below it more compute efficiency gains nothing."""
    for panel in figure_5().panels:
        assert panel.boundary is not None
        slope = panel.boundary.y[-1] / panel.boundary.x[-1]
        cost = prefill_pass(llama2_7b(), find_variant(panel.title), 4096).total
        assert cost.flops / (0.5 * 30e12) == pytest.approx(cost.moved_bytes / (slope * 0.5 * 50e9))


def test_less_traffic_makes_the_first_token_earlier() -> None:
    """Nowhere on the grid is the variant with a quantised, fused cache later by more than its dequantisation."""
    plain, compressed = figure_5().panels
    for row, other in zip(plain.values, compressed.values, strict=True):
        assert all(fast <= 1.0001 * slow for slow, fast in zip(row, other, strict=True))
