"""The picture of a sweep over layers offloaded."""

from __future__ import annotations

from perfsuite.experiments.offload.chart import offload_chart, offload_finding
from tests.synthetic_offload import offload_point, offload_sweep


def test_a_sweep_is_drawn_by_phase() -> None:
    """Medians in the order of the layers down to the slowest process; a split more for each, two operators fewer."""
    chart = offload_chart(offload_sweep(), name="a workload", device="a device")
    prefill, decode, splits, operators = chart.panels
    assert (prefill.title, decode.title) == ("prefill", "decode")
    (line,) = prefill.lines
    assert (line.x, line.y, line.low_y) == ((0.0, 1.0, 3.0), (100.0, 200.0, 300.0), (90.0, 190.0, 290.0))
    assert decode.lines[0].y == (11.0, 20.0, 6.0)
    assert [line.label for line in splits.lines] == ["prefill", "decode"]
    assert all(line.y == (1.0, 2.0, 4.0) for line in splits.lines)
    assert all(line.y == (7.0, 5.0, 1.0) for line in operators.lines)
    assert "a workload on a device" in chart.note


def test_a_phase_that_was_not_run_has_no_panel() -> None:
    sweep = offload_sweep(offload_point(0, (), (1.0,)), offload_point(3, (), (2.0,)))
    chart = offload_chart(sweep, name="a workload", device="a device")
    assert [panel.title for panel in chart.panels] == ["decode", "splits of a call", "operators on the processor"]


def test_the_finding_names_the_fastest_of_each_phase() -> None:
    assert offload_finding(offload_sweep()) == (
        "prefill is fastest with 3 layers on the device (300 tokens/s); "
        "decode is fastest with 1 layer on the device (20 tokens/s)"
    )
