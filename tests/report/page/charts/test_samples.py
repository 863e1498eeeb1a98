"""Where the samples of a case lie."""

from __future__ import annotations

import re
from dataclasses import replace

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


def test_hundreds_of_samples_are_not_all_drawn() -> None:
    """Sixty strokes are, from all samples: the least and the most are among them, and words and median are of all."""
    times_ns = (*range(1_000, 1_100), *range(5_000, 5_101))
    many = replace(PAIRED[0], samples_ns=times_ns, baseline_samples_ns=times_ns)
    drawing = samples_drawing(many)
    assert drawing is not None
    for look in ("k0", "k4"):
        assert strokes(drawing, look) == 60
        places = [int(each) for each in re.findall(r"M(\d+) ", pieces(drawing, "path", look)[0].attributes["d"])]
        few, more = [each for each in places if each < 500], [each for each in places if each > 500]
        assert (len(few), len(more)) == (30, 30)
        assert max(places) - min(places) > 900
    told = "1.00 µs to 5.10 µs"
    assert pieces(drawing, "svg")[0].attributes["aria-label"] == f"this run {told}; old side {told}"
    (middle, _) = re.findall(r"M(\d+) ", pieces(drawing, "path", "median")[0].attributes["d"])
    assert int(middle) > 900
