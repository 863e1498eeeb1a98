"""Roofs and regions as series."""

from __future__ import annotations

import math

import pytest

from perfsuite.expectation.roofline.point import inference_potential
from perfsuite.expectation.roofline.survey import ProcessorCeilings, Roof
from perfsuite.records.chart import RoofRole
from perfsuite.report.roofline_roofs import (
    Frame,
    arithmetic_roofs,
    cache_levels,
    frame_of,
    potential_region,
    roof_line,
    side_roofs,
)

from .conftest import survey

ROOF = Roof(peak_flops_per_s=100e9, bandwidth_bytes_per_s=10e9)
FRAME = Frame(least_x=1.0, most_x=1000.0, least_y=1e9, most_y=200e9)


def ceilings(*levels: tuple[int, float]) -> ProcessorCeilings:
    return ProcessorCeilings(levels=levels, fp32_flops_per_s=100.0, f16_flops_per_s=None, int8_flops_per_s=None)


def test_a_roof_goes_through_its_ridge() -> None:
    """Up to it with the intensity, level from it on, in GFLOP/s; outside the frame it leaves a straight line."""
    line = roof_line("roof", ROOF, FRAME, role=RoofRole.MAIN)
    assert line.x == (1.0, 10.0, 1000.0)
    assert line.y == (10.0, 100.0, 100.0)
    frame = Frame(least_x=20.0, most_x=1000.0, least_y=1e9, most_y=200e9)
    assert roof_line("roof", ROOF, frame, role=RoofRole.MAIN).y == (100.0, 100.0, 100.0)


def test_contours_are_where_the_inference_potential_is_the_same() -> None:
    """Every point has the distance of its label, none is below the frame, and the region parts at the ridge."""
    contours = potential_region(ROOF, FRAME).contours
    assert [contour.label for contour in contours] == ["0.5 decades", "1 decade", "1.5 decades"]
    for contour in contours:
        for x, y in zip(contour.x, contour.y, strict=True):
            decades = inference_potential(x, y * 1e9, ROOF).decades
            assert decades == pytest.approx(float(contour.label.split()[0]), rel=1e-9)
            assert y * 1e9 <= ROOF.attainable_flops_per_s(x) * (1.0 + 1e-9)
    frame = Frame(least_x=1.0, most_x=1000.0, least_y=5e9, most_y=200e9)
    assert len(potential_region(ROOF, frame).contours) == 2
    region = potential_region(ROOF, FRAME)
    assert (region.memory.x, region.memory.high_y) == ((1.0, 10.0), (10.0, 100.0))
    assert (region.compute.x, region.compute.high_y) == ((10.0, 1000.0), (100.0, 100.0))
    assert {*region.memory.low_y, *region.compute.low_y} == {1.0}


def test_plateaus_of_the_ladder_are_levels_of_cache() -> None:
    """Two rungs alike are one, the first is one alone, memory is no cache, and missing arithmetic has no roof."""
    ladder = ((1, 400.0), (2, 190.0), (4, 200.0), (8, 140.0), (16, 90.0), (32, 95.0), (64, 20.0), (128, 19.0))
    assert cache_levels(ceilings(*ladder)) == ((1, 400.0), (4, 200.0), (32, 95.0))
    assert cache_levels(ceilings((1, 24.0), (2, 24.0), (4, 20.0), (8, 20.0))) == ()
    assert cache_levels(ceilings((1, 24.0))) == ()
    assert [name for name, _ in arithmetic_roofs(survey().of("cpu", 2))] == ["FP32", "int8"]


def test_slopes_end_at_the_highest_peak() -> None:
    """Those that would only be beyond it to the left of the frame are left out."""
    slopes = [roof for roof in side_roofs(survey().of("cpu", 2), FRAME) if "GB/s" in roof.label]
    assert [roof.y[-1] for roof in slopes] == pytest.approx([400.0, 400.0])
    assert [roof.x[-1] for roof in slopes] == pytest.approx([2.0, 4.0])
    frame = Frame(least_x=3.0, most_x=1000.0, least_y=1e9, most_y=200e9)
    assert len([roof for roof in side_roofs(survey().of("cpu", 2), frame) if "GB/s" in roof.label]) == 1


def test_axes_end_at_round_numbers() -> None:
    """1, 2 or 5 times a power of ten, with room beyond points and ridges."""
    frame = frame_of([(2.0, 3e9), (800.0, 50e9)], [ROOF])
    assert (frame.least_x, frame.most_x, frame.least_y) == pytest.approx((1.0, 2000.0, 2e9))
    assert frame.most_y > 110e9
    assert (frame.x_axis.caption, frame.y_axis.caption) == ("operational intensity (FLOP/byte)", "rate (GFLOP/s)")
    assert frame.y_axis.least == pytest.approx(2.0)
    assert math.log10(frame.most_y / 100e9) < 0.5
