"""Figure 4."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.figures import figure_4, figure_5
from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.tables import llama2_7b
from perfsuite.workload.variant import find_variant


@pytest.mark.parametrize("place", [0, 1])
def test_a_cell_is_the_longer_of_two_times(place: int) -> None:
    """Compute efficiency runs along x, memory efficiency along y, on 30 TOPS and 50 GB/s; on the line both meet."""
    panel = figure_5().panels[place]
    cost = prefill_pass(llama2_7b(), find_variant(panel.title), 4096).total
    for memory_pct, row in zip(panel.y, panel.values, strict=True):
        for compute_pct, value in zip(panel.x, row, strict=True):
            compute_s = cost.flops / (compute_pct / 100 * 30e12)
            memory_s = cost.moved_bytes / (memory_pct / 100 * 50e9)
            assert value == pytest.approx(max(compute_s, memory_s))
    assert panel.boundary is not None
    slope = panel.boundary.y[-1] / panel.boundary.x[-1]
    assert cost.flops / (0.5 * 30e12) == pytest.approx(cost.moved_bytes / (slope * 0.5 * 50e9))


@pytest.mark.parametrize(
    ("place", "variant", "compute_ratio", "memory_ratio"),
    [(0, "bf16-int4", 1.0, 1.0), (3, "bf16-int4-kv4", 0.5, 0.8)],
)
def test_a_cell_is_the_ratio_of_two_times(place: int, variant: str, compute_ratio: float, memory_ratio: float) -> None:
    """At 20 TOPS and 70 GB/s: operations over compute, over bytes over bandwidth."""
    cost = prefill_pass(llama2_7b(), find_variant(variant), 4096).total
    compute_s = cost.flops / (compute_ratio * 20e12)
    memory_s = (cost.read_bytes + cost.written_bytes) / (memory_ratio * 70e9)
    assert figure_4().panels[place].values[1][6] == pytest.approx(compute_s / memory_s)


def test_the_ratio_is_linear_in_bandwidth_and_inverse_in_peak() -> None:
    """Every cell times TOPS over GB/s is the same number, at 50 % of compute and 80 % of memory 1.6 times as large."""
    for panel in figure_4().panels:
        constants = [
            value * tops / gigabytes
            for tops, row in zip(panel.y, panel.values, strict=True)
            for gigabytes, value in zip(panel.x, row, strict=True)
        ]
        assert constants == pytest.approx([constants[0]] * 100)
    full, _, lower, _ = figure_4().panels
    assert lower.values[0][0] / full.values[0][0] == pytest.approx(1.6)


def test_the_line_parts_what_compute_bounds_from_the_rest() -> None:
    """The title tells how much that is."""
    shares = []
    for panel in figure_4().panels:
        assert panel.boundary is not None
        slope = panel.boundary.y[0] / panel.boundary.x[0]
        for tops, row in zip(panel.y, panel.values, strict=True):
            assert [value > 1.0 for value in row] == [tops < slope * gigabytes for gigabytes in panel.x]
        shares.append(sum(value > 1.0 for row in panel.values for value in row))
    assert [f"{share} %" in figure_4().title for share in shares] == [True] * 4
    assert shares[0] < shares[2] < shares[1] < shares[3]
