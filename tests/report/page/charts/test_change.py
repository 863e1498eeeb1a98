"""How much a case changed: words and picture say the same."""

from __future__ import annotations

import re

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.report.charts.axes import Axis
from perfsuite.report.page.charts.change import Change, change_axis
from perfsuite.report.page.words import interval_text
from perfsuite.testing.run_files import synthetic_run
from perfsuite.units import format_ratio

from ..svg_pieces import Piece, pieces

#: A change, its bounds and its margin.
SURE = Change(ratio=1.062, bounds=(1.05, 1.07), margin_ratio=0.02, outcome=Outcome.REGRESSED)
VAGUE = Change(ratio=0.97, bounds=None, margin_ratio=None, outcome=Outcome.INCONCLUSIVE)


def percent(text: str) -> float:
    """Return the figure of ``+6.2 %``, or of ``× 2``, as a change in per cent."""
    value = float(re.sub(r"[^\d.+-]", "", text))
    return (value - 1.0) * 100.0 if text.startswith("×") else value


def value_at(axis: Axis, part: float) -> float:
    return axis.low + part * (axis.high - axis.low)


def dot(change: Change, axis: Axis) -> Piece:
    (found,) = pieces(change.drawing(axis), "use")
    return found


RUNS = [synthetic_run(n_cases=500), synthetic_run(n_cases=500, against=None), synthetic_run(n_cases=500, seed=3)]


@pytest.mark.parametrize("run", RUNS)
def test_picture_and_words_agree(run: object) -> None:
    """Dot and bar end where the words say, on the scale that is written out; without an interval both have none."""
    told = [(change, interval_text(each)) for each in run.judgements if (change := Change.of(each))]  # type: ignore[attr-defined]
    axis = change_axis(change for change, _ in told)
    assert len(told) > 100
    off = (axis.high - axis.low) * 1e-3 + 0.06  # digits of a place, and of the words
    for change, interval in told:
        found, drawing = dot(change, axis), change.drawing(axis)
        if axis.low <= percent(change.text) <= axis.high:
            assert value_at(axis, found.across("x")) == pytest.approx(percent(change.text), abs=off)
        else:
            assert found.attributes["href"] in ("#shape-right", "#shape-left")
        spans = pieces(drawing, look="span")
        assert bool(spans) == (interval != "-") == (change.bounds is not None)
        for span in spans:
            ends = [value_at(axis, span.across(name)) for name in ("x1", "x2")]
            bounds = [min(max(percent(each), axis.low), axis.high) for each in interval.split(" to ")]
            assert ends == pytest.approx(bounds, abs=off)
            assert format_ratio(change.ratio) == change.text


def test_six_per_cent_are_seen() -> None:
    """They are a twelfth of the width or more, however large other changes are; what is beyond is an arrow."""
    huge = Change(ratio=20.0, bounds=(19.0, 21.0), margin_ratio=0.05, outcome=Outcome.REGRESSED)
    tiny = Change(ratio=1 / 20, bounds=None, margin_ratio=None, outcome=Outcome.IMPROVED)
    for changes in ([SURE], [SURE, huge], [SURE, huge, tiny], [VAGUE]):
        axis = change_axis(changes)
        assert axis.part(6.0) - axis.part(0.0) >= 1 / 12
    assert dot(huge, axis := change_axis([huge, tiny])).attributes["href"] == "#shape-right"
    assert dot(tiny, axis).attributes["href"] == "#shape-left"
