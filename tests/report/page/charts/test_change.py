"""How much a case changed: words and picture say the same."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.records.run_file import RunFile
from perfsuite.report.charts.axes import Axis
from perfsuite.report.page.charts.change import change_axis, change_drawing
from perfsuite.report.page.words import interval_text
from perfsuite.testing.run_files import synthetic_run
from perfsuite.units import format_ratio

from ..svg_pieces import Piece, pieces


def changed(ratio: float, lower_ratio: float | None = None, upper_ratio: float | None = None) -> Judgement:
    judgement = told_judgement("phase/a/b/decode", "phase", Outcome.REGRESSED, "because", ratio)
    return replace(judgement, lower_ratio=lower_ratio, upper_ratio=upper_ratio, margin_ratio=0.02)


SURE, VAGUE = changed(1.062, 1.05, 1.07), changed(0.97)


def percent(text: str) -> float:
    """Return the figure of ``+6.2 %``, or of ``× 2``, as a change in per cent."""
    value = float(re.sub(r"[^\d.+-]", "", text))
    return (value - 1.0) * 100.0 if text.startswith("×") else value


def value_at(axis: Axis, part: float) -> float:
    return axis.low + part * (axis.high - axis.low)


def axis_of(*judgements: Judgement) -> Axis:
    axis = change_axis(judgements)
    assert axis is not None
    return axis


def dot(judgement: Judgement, axis: Axis) -> Piece:
    (found,) = pieces(change_drawing(judgement, axis), "use")
    return found


RUNS = [synthetic_run(n_cases=500), synthetic_run(n_cases=500, against=None), synthetic_run(n_cases=500, seed=3)]


@pytest.mark.parametrize("run", RUNS)
def test_picture_and_words_agree(run: RunFile) -> None:
    """Dot and bar end where the words say, on the scale that is written out; without an interval both have none."""
    cases = [each for each in run.judgements if each.change_ratio is not None]
    axis = axis_of(*cases)
    assert len(cases) > 100
    off = (axis.high - axis.low) * 1e-3 + 0.06  # digits of a place, and of the words
    for case in cases:
        found, interval, change = dot(case, axis), interval_text(case), percent(format_ratio(case.change_ratio))
        if axis.low <= change <= axis.high:
            assert value_at(axis, found.across("x")) == pytest.approx(change, abs=off)
        else:
            assert found.attributes["href"] in ("#shape-right", "#shape-left")
        spans = pieces(change_drawing(case, axis), look="span")
        assert bool(spans) == (interval != "-")
        for span in spans:
            ends = [value_at(axis, span.across(name)) for name in ("x1", "x2")]
            bounds = [min(max(percent(each), axis.low), axis.high) for each in interval.split(" to ")]
            assert ends == pytest.approx(bounds, abs=off)


def test_six_per_cent_are_seen() -> None:
    """They are a twelfth of the width or more, however large other changes are; what is beyond is an arrow."""
    huge, tiny = changed(20.0, 19.0, 21.0), changed(1 / 20)
    for cases in ([SURE], [SURE, huge], [SURE, huge, tiny], [VAGUE]):
        axis = axis_of(*cases)
        assert axis.part(6.0) - axis.part(0.0) >= 1 / 12
    assert dot(huge, axis := axis_of(huge, tiny)).attributes["href"] == "#shape-right"
    assert dot(tiny, axis).attributes["href"] == "#shape-left"
