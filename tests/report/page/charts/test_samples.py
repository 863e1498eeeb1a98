"""Where the samples of a case lie."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.outcome import Outcome
from perfsuite.report.page.charts.samples import samples_drawing
from perfsuite.testing.run_files import synthetic_run

from ..svg_pieces import pieces

PAIRED, STORED = (synthetic_run(n_cases=60, against=against).judgements for against in ("settings ubatch=512", None))


def strokes(drawing: str, look: str) -> int:
    """Return how many strokes a row has."""
    return sum(each.attributes["d"].count("M") for each in pieces(drawing, "path", look))


def test_each_sample_is_a_stroke() -> None:
    """Of this run, and of the old side or of the baseline, with a median each; the picture tells their ends."""
    case = PAIRED[0]
    drawing = samples_drawing(case)
    assert drawing is not None
    assert strokes(drawing, "k0") == len(case.samples_ns)
    assert strokes(drawing, "k4") == len(case.baseline_samples_ns)
    assert strokes(drawing, "median") == 2
    assert "old side" in drawing
    assert pieces(drawing, "svg")[0].attributes["aria-label"].startswith("this run ")
    stored = samples_drawing(STORED[0])
    assert stored is not None
    assert strokes(stored, "k4") == 1
    assert "baseline" in stored


def test_what_asks_nothing_has_no_picture() -> None:
    """An operator that passed, a case of one sample and nothing to compare it with, and one without any."""
    operator = next(each for each in PAIRED if each.kind == "operator" and each.outcome is Outcome.PASS)
    assert samples_drawing(operator) is None
    assert samples_drawing(replace(operator, outcome=Outcome.INCONCLUSIVE)) is not None
    alone = replace(PAIRED[0], samples_ns=(5,), baseline_samples_ns=(), baseline_ns=None)
    assert samples_drawing(alone) is None
    assert samples_drawing(replace(alone, samples_ns=())) is None


def test_hundreds_of_samples_are_not_all_drawn() -> None:
    """The first sixty are."""
    many = replace(PAIRED[0], samples_ns=tuple(range(1_000, 1_200)))
    drawing = samples_drawing(many)
    assert drawing is not None
    assert strokes(drawing, "k0") == 60
