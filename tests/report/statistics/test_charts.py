"""Pictures of statistics."""

from __future__ import annotations

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.report.charts.picture import picture_svg
from perfsuite.report.statistics.charts import crossover_chart, statistics_chart
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.statistics.statistics_view import trace_statistics

from ...synthetic_statistics import attention, law_trace, product

SIZES = (64, 128, 256, 512)
GRAPH = (*(product(f"ffn_{size}", 64, size) for size in SIZES), attention(256))
TRACE = law_trace(GRAPH, 20, lambda step, at, _: (1_000 * 2**at) if at < 4 else 5_000 + 50 * step)


def test_steps_and_sizes_are_drawn() -> None:
    chart = statistics_chart(trace_statistics(TRACE), name="run")
    steps, products = chart.panels
    assert steps.groups[0].x == tuple(map(float, range(1, 21)))
    assert products.groups[0].x == tuple(64.0 * size for size in SIZES)
    assert products.groups[0].y == (1.0, 2.0, 4.0, 8.0)
    assert len(steps.lines) == len(products.lines) == 1
    assert chart.title == "run: operators grow by 50.0 ns a position of context, 100% of it attention"
    assert "decode: MUL_MAT" in picture_svg(chart)


def test_what_has_nothing_to_draw_says_so() -> None:
    """A trace of one size without a context, and two without a common operator, make no picture."""
    with pytest.raises(PerfsuiteError, match="empty: has no steps"):
        statistics_chart(trace_statistics(engine_trace(graphs=())), name="empty")
    with pytest.raises(PerfsuiteError, match="share no operator"):
        crossover_chart((), name="pair")
