"""The roofline of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.observation import NO_OBSERVATION, CaseWork
from perfsuite.report.page.charts.roofline import roofline_figure
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

RUN = synthetic_run(n_cases=60)
OBSERVATION = synthetic_observation(RUN)


def test_a_point_lies_where_its_work_and_time_put_it() -> None:
    """FLOPs a byte to the right, and upwards FLOPs over the median time."""
    (figure,) = roofline_figure(RUN, OBSERVATION)
    points = next(layer["data"]["values"] for layer in figure.spec["layer"] if "kind" in layer["data"]["values"][0])
    prefill = next(each for each in points if each["tip"].startswith("prefill:"))
    work = next(each for each in OBSERVATION.works if each.case_id == RUN.judgements[0].case_id)
    assert prefill["intensity"] == pytest.approx(work.flops / work.moved_bytes, rel=1e-4)
    assert prefill["rate"] == pytest.approx(work.flops / (RUN.judgements[0].measured_ns or 0), rel=1e-4)


def test_a_slope_ends_at_its_ridge() -> None:
    """Memory's roof is bandwidth times intensity, up to the highest arithmetic; each of those has its rate."""
    assert RUN.ceilings is not None
    (figure,) = roofline_figure(RUN, OBSERVATION)
    lines = [each for each in figure.spec["layer"][0]["data"]["values"] if each["roof"].startswith("memory")]
    bandwidth = RUN.ceilings.bandwidths[-1].fastest_bytes_per_s
    for each in lines:
        assert each["rate"] == pytest.approx(each["intensity"] * bandwidth / 1e9, rel=1e-3)
    assert lines[-1]["rate"] == pytest.approx(RUN.ceilings.int8_flops_per_s / 1e9, rel=1e-3)
    (figure,) = roofline_figure(RUN, OBSERVATION)
    told = [each["told"] for each in figure.spec["layer"][1]["data"]["values"]]
    assert told == ["FP32 532 GFLOP/s", "int8 2.14 TFLOP/s"]


def test_what_computes_or_moves_nothing_has_no_place() -> None:
    """A logarithm of zero is nowhere; without points or ceilings there is no figure."""
    works = tuple(CaseWork(case_id=each.case_id, flops=0, moved_bytes=8) for each in RUN.judgements)
    assert not list(roofline_figure(RUN, replace(NO_OBSERVATION, works=works)))
    assert not list(roofline_figure(replace(RUN, ceilings=None), OBSERVATION))
