"""The footnote on changes."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.judgement import Judgement
from perfsuite.report.change_notes import change_notes
from perfsuite.report.exports.markdown_page import page
from perfsuite.report.page.columns import columns_for
from perfsuite.report.summary_table import summary_text
from perfsuite.testing.run_files import synthetic_run
from perfsuite.units import format_ns, format_ratio

from ..synthetic_judgements import PASSED

APART = replace(PASSED, measured_ns=34_800_000, baseline_ns=34_600_000, change_ratio=1.034)


def _shown_by_each(judgement: Judgement) -> tuple[str, str, str]:
    """What terminal, Markdown and page show of a single case, as text."""
    run = replace(synthetic_run(), judgements=(judgement,))
    cells = (column.cell(judgement).text for column in columns_for([judgement], ()))
    terminal = summary_text([judgement], width=None, is_color=False)
    return terminal, page([run], limit=10**6), " ".join(cells)


def test_every_format_shows_the_same_baseline_and_the_change_that_is_judged() -> None:
    """Terminal, Markdown and page have the median of the baseline, and none the time that the change would make."""
    by_change_ns = APART.old_ns
    for text in _shown_by_each(APART):
        assert "34.6 ms" in text
        assert format_ns(by_change_ns) not in text
        assert format_ratio(1.034) in text


def test_a_change_that_is_no_quotient_has_a_footnote() -> None:
    """Terminal and Markdown end with what the change is of: of pairs, or of stored sessions."""
    paired = replace(APART, n_pairs=7)
    (of_sessions,), (of_pairs,) = change_notes([PASSED, APART, APART]), change_notes([paired])
    assert "sentinels" in of_sessions
    assert "of the pairs" in of_pairs
    for judgement, note in ((APART, of_sessions), (paired, of_pairs)):
        assert all(text.count(note) == 1 for text in _shown_by_each(judgement)[:2])


def test_a_quotient_has_no_footnote() -> None:
    """A change that is the quotient as it is shown, and a case without one of the figures, need no word."""
    assert not change_notes([PASSED])
    assert not change_notes([replace(APART, **{name: None}) for name in ("measured_ns", "baseline_ns", "change_ratio")])
