"""Roofs and regions as series."""

from __future__ import annotations

from perfsuite.expectation.roofline.point import Roof
from perfsuite.report.roofline_roofs import (
    Frame,
    arithmetic_roofs,
    cache_levels,
    roof_line,
)

from ..synthetic_roofline import processor_ceilings
from .conftest import survey

ROOF = Roof(peak_flops_per_s=100e9, bandwidth_bytes_per_s=10e9)
FRAME = Frame(least_x=1.0, most_x=1000.0, least_y=1e9, most_y=200e9)


def test_a_roof_goes_through_its_ridge() -> None:
    """Up to it with the intensity, level from it on, in GFLOP/s; outside the frame it leaves a straight line."""
    line = roof_line("roof", ROOF, FRAME)
    assert line.x == (1.0, 10.0, 1000.0)
    assert line.y == (10.0, 100.0, 100.0)
    frame = Frame(least_x=20.0, most_x=1000.0, least_y=1e9, most_y=200e9)
    assert roof_line("roof", ROOF, frame).y == (100.0, 100.0, 100.0)


def test_plateaus_of_the_ladder_are_levels_of_cache() -> None:
    """Two rungs alike are one, the first is one alone, memory is no cache, and missing arithmetic has no roof."""
    ladder = ((1, 400.0), (2, 190.0), (4, 200.0), (8, 140.0), (16, 90.0), (32, 95.0), (64, 20.0), (128, 19.0))
    assert cache_levels(processor_ceilings(*ladder)) == ((1, 400.0), (4, 200.0), (32, 95.0))
    assert cache_levels(processor_ceilings((1, 24.0), (2, 24.0), (4, 20.0), (8, 20.0))) == ()
    assert cache_levels(processor_ceilings((1, 24.0))) == ()
    assert [name for name, _ in arithmetic_roofs(survey().of(2))] == ["FP32", "int8"]
