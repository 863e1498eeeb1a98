"""The roofline of a run."""

from __future__ import annotations

import math

import pytest

from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.charts.roofline import roofline_figure
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

from ..svg_pieces import pieces, tips

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
