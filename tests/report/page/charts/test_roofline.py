"""The roofline of a run."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from perfsuite.records.observation import NO_OBSERVATION, CaseWork
from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.charts.roofline import roofline_figure
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

from ..svg_pieces import pieces, points, tips

RUN = synthetic_run(n_cases=60)
OBSERVATION = synthetic_observation(RUN)


def the_figure() -> Figure:
    """The roofline of the run."""
    (figure,) = roofline_figure(RUN, OBSERVATION)
    return figure


def decades(figure: Figure) -> tuple[float, float]:
    """Return where 1 FLOP/byte lies and how wide a decade is, by the numbers at the axis."""
    texts = {each.text: each for each in pieces(figure.drawing, "text") if "middle" in each.look}
    places = sorted((math.log10(float(text.replace(",", ""))), each.across("x")) for text, each in texts.items())
    (first, at), (last, there) = places[0], places[-1]
    width = (there - at) / (last - first)
    return at - first * width, width


def test_a_point_lies_where_its_work_and_time_put_it() -> None:
    """FLOPs a byte to the right by the numbers of the axis; it tells FLOPs over the median time."""
    figure = the_figure()
    one, decade = decades(figure)
    work = next(each for each in OBSERVATION.works if each.case_id == RUN.judgements[0].case_id)
    marks = [each for each in pieces(figure.drawing, "use") if each.attributes["x"].endswith("%")]
    told = dict(zip(tips(figure.drawing), marks, strict=True))
    (prefill,) = (each for name, each in told.items() if name.startswith("prefill:"))
    intensity = work.flops / work.moved_bytes
    assert prefill.across("x") == pytest.approx(one + decade * math.log10(intensity), abs=2e-3)
    (tip,) = (name for name in told if name.startswith("prefill:"))
    assert f"{intensity:.3g} FLOP/byte" in tip


def test_a_slope_ends_at_its_ridge() -> None:
    """Memory's roof rises by a decade in a decade, up to the highest arithmetic; each of those has its rate."""
    figure = the_figure()
    labels = [each.text for each in pieces(figure.drawing, "text", "end") if "FLOP/s" in each.text]
    assert labels == ["FP32 532 GFLOP/s", "int8 2.14 TFLOP/s"]
    (rule, *_) = (each for each in pieces(figure.drawing, "line", "ink") if each.attributes.get("x2") == "100%")
    assert float(rule.attributes["y1"]) > 0
    ends = [points(each)[1][1] for each in pieces(figure.drawing, "path", "ink")]
    assert len(ends) >= 1
    assert all(each == pytest.approx(ends[0], abs=2e-3) for each in ends)


def test_what_computes_or_moves_nothing_has_no_place() -> None:
    """A logarithm of zero is nowhere; without points or ceilings there is no figure."""
    works = tuple(CaseWork(case_id=each.case_id, flops=0, moved_bytes=8) for each in RUN.judgements)
    assert not list(roofline_figure(RUN, replace(NO_OBSERVATION, works=works)))
    assert not list(roofline_figure(replace(RUN, ceilings=None), OBSERVATION))
