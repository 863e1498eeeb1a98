"""Where the time of a phase goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.report.page.charts.operators import operators_figures
from perfsuite.testing.run_files import synthetic_run
from perfsuite.units import format_ns

from ..svg_pieces import pieces

RUN = synthetic_run()


def test_bars_and_words_agree() -> None:
    """The length of a bar is to the longest as its time is, and that time is beside it."""
    (_, decode) = operators_figures(RUN)
    found = [each for each in RUN.judgements if each.case_id.startswith("operator/") and "/decode/" in each.case_id]
    longest = sorted(found, key=lambda each: -(each.measured_ns or 0))[:12]
    widths = [each.across("width") for each in pieces(decode.drawing, "rect")]
    told = [each.text for each in pieces(decode.drawing, "span")][::2]
    assert told == [format_ns(each.measured_ns) for each in longest]
    first = longest[0].measured_ns or 1
    assert [each / widths[0] for each in widths] == pytest.approx(
        [(each.measured_ns or 0) / first for each in longest], abs=2e-3
    )


def test_an_expectation_beyond_the_longest_lies_at_the_end() -> None:
    """As an arrow, which the legend names; without one, the legend has none."""
    first = next(
        each for each in RUN.judgements if each.case_id.startswith("operator/") and "/prefill/" in each.case_id
    )
    far = replace(first, measured_ns=1_000_000, baseline_ns=None, expected_ns=2_000_000)
    near = replace(far, case_id=f"{first.case_id}-near", measured_ns=999_000, expected_ns=500_000)
    (figure,) = operators_figures(replace(RUN, judgements=(far, near)))
    marks = [each for each in pieces(figure.drawing, "use", "k4") if each.attributes["x"].endswith("%")]
    assert [(each.attributes["href"], each.attributes["x"]) for each in marks] == [
        ("#shape-right", "100%"),
        ("#shape-diamond", "49.02%"),
    ]
    assert "expected, beyond the end" in figure.drawing
    (plain,) = operators_figures(replace(RUN, judgements=(near,)))
    assert "beyond" not in plain.drawing
