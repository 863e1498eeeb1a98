"""Several devices in one roofline."""

from __future__ import annotations

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.roof import Roof
from perfsuite.records.chart import RoofRole
from perfsuite.report.roofline_devices import devices_chart

from .conftest import phases, run_of

PUBLISHED = ("board", Roof(peak_flops_per_s=512e9, bandwidth_bytes_per_s=34.1e9))


def test_measured_and_published_roofs_are_told_apart() -> None:
    """Each with its name and ridge; only the measured one has points, under its own label."""
    chart = devices_chart([run_of(phases("base", "siso", 1.0))], [PUBLISHED])
    (panel,) = chart.panels
    main = [roof for roof in panel.roofs if roof.role is RoofRole.MAIN]
    assert [(roof.label, roof.is_measured) for roof in main] == [
        ("host, 2 threads, ridge 10.00", True),
        ("board, ridge 15.01", False),
    ]
    assert {group.label for group in panel.groups} == {main[0].label}
    assert chart.title == "Ridges lie between 10.00 FLOP/byte (host, 2 threads) and 15.01 (board)"
    assert chart.note == "host, 2 threads, llama.cpp 1, 2026-03-01; thin broken roofs as published"


def test_the_arithmetic_of_the_points_is_beside_the_classical_roof() -> None:
    """Points of quantised weights may lie above FP32, so the roof over them is shown."""
    (panel,) = devices_chart([run_of(phases("base", "siso", 1.0))], []).panels
    (side,) = (roof for roof in panel.roofs if roof.role is RoofRole.SIDE)
    assert side.label == "host, 2 threads, int8, 400 GFLOP/s"


def test_what_no_sweep_varies_stands_for_a_device() -> None:
    """Else the scenarios do."""
    rows = (*phases("depth", "2", 1.0), *phases("scenario", "siso", 0.5))
    for extra, rate in (((), 5.0), (phases("base", "siso", 0.25), 2.5)):
        (panel,) = devices_chart([run_of((*rows, *extra))], []).panels
        (decode,) = (group for group in panel.groups if group.kind == "decode only")
        assert decode.y == pytest.approx((rate,))


def test_published_devices_alone_are_a_picture() -> None:
    """Roofs without points; without any device there is nothing to draw."""
    chart = devices_chart([], [PUBLISHED])
    assert chart.panels[0].groups == ()
    assert chart.title == "board: the ridge lies at 15.01 FLOP/byte"
    with pytest.raises(PerfsuiteError, match="there is no device"):
        devices_chart([], [])
