"""The picture of lengths."""

from __future__ import annotations

import pytest

from perfsuite.records.chart import LineRole
from perfsuite.report.prompt_chart import prompt_chart
from perfsuite.workload.prompt_subset import Subset

LENGTHS = (8, 8, 8, 16, 16, 64)


def test_both_outlines_are_over_the_same_bins_from_nothing_to_nothing() -> None:
    """From the shortest prompt's bin to the longest's, in shares of each; the title tells the divergence."""
    (panel,) = prompt_chart(LENGTHS, Subset(indices=(0, 3), kl_nats=0.125), name="x.txt").panels
    kept, whole = panel.lines
    assert kept.x == whole.x
    assert (whole.x[0], whole.x[-1]) == (8.0, pytest.approx(64 * 2**0.25))
    assert [kept.role, whole.role] == [LineRole.CURVE, LineRole.REFERENCE]
    heights = dict(zip(whole.x[1:-1:2], whole.y[1:-1:2], strict=True))
    assert [heights[edge] for edge in (8.0, 16.0, 32.0, 64.0)] == pytest.approx([50.0, 100 / 3, 0.0, 100 / 6])
    assert sum(whole.y[1:-1:2]) == pytest.approx(100.0)
    assert sum(kept.y[1:-1:2]) == pytest.approx(100.0)
    chart = prompt_chart(LENGTHS, Subset(indices=(0, 3), kl_nats=0.12345), name="x.txt")
    assert chart.title == "2 of 6 prompts of x.txt diverge from the whole by 0.1235 nats in their lengths"
