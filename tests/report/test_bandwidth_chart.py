"""Bandwidth over the working set."""

from __future__ import annotations

import pytest

from perfsuite.expectation.roofline.ceiling import Survey
from perfsuite.report.bandwidth_chart import bandwidth_chart

from .conftest import LADDER, MIB, bandwidth, survey


def test_each_processor_and_number_of_threads_has_a_panel() -> None:
    """The fewest threads first, OpenCL devices after the processor."""
    ceilings = (bandwidth("copy", 256 * MIB, 99.0, None, "GPU"), *survey().ceilings)
    chart = bandwidth_chart(Survey(ceilings=ceilings))
    assert [panel.title for panel in chart.panels] == ["cpu, 1 thread", "cpu, 2 threads", "GPU"]
    assert [line.label for line in chart.panels[1].lines] == ["read", "copy", "triad"]
    assert [line.label for line in chart.panels[2].lines] == ["copy"]


def test_lines_are_best_rates_with_medians_below_and_the_title_tells_the_best_of_all() -> None:
    """In MiB and GB/s, ascending in whatever order they were measured; the title has the fastest rung, and memory."""
    ceilings = tuple(reversed(survey().ceilings))
    line = bandwidth_chart(Survey(ceilings=ceilings)).panels[1].lines[0]
    assert line.x == tuple(held_bytes / MIB for held_bytes, _ in LADDER)
    assert line.y == pytest.approx([rate for _, rate in LADDER])
    assert line.low_y == pytest.approx([0.9 * rate for _, rate in LADDER])
    assert (
        bandwidth_chart(survey()).title == "cpu, 2 threads: read has 200 GB/s over 64.0 KiB and 10.0 GB/s over 256 MiB"
    )
