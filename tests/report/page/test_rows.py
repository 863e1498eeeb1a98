"""Tables of all cases."""

from __future__ import annotations

from perfsuite.records.outcome import Outcome, told_judgement
from perfsuite.report.page.charts.change import change_axis, change_drawing
from perfsuite.report.page.rows import case_tables, columns_for, outcome_order, scale_note
from perfsuite.report.reproduce import reproductions
from perfsuite.testing.run_files import synthetic_run
from perfsuite.units import format_ratio

from .conftest import observed_run

PAIRED_RUN = synthetic_run(n_cases=60)
PAIRED_CASE = next(each for each in PAIRED_RUN.judgements if each.outcome is Outcome.INCONCLUSIVE and each.n_pairs)


TOLD = told_judgement("trace/a/b/balance", "trace", Outcome.PASS, "balanced")


def test_a_change_is_drawn_on_one_scale() -> None:
    """That of all tables, which is named beside them; a run without changes has none."""
    axis = change_axis(PAIRED_RUN.judgements)
    cells = {column.title: column.cell(PAIRED_CASE) for column in columns_for([PAIRED_CASE], {}, axis)}
    assert axis is not None
    assert cells["Change"].drawing == change_drawing(PAIRED_CASE, axis)
    assert cells["Change"].text == format_ratio(PAIRED_CASE.change_ratio)
    (note,) = scale_note(axis)
    assert f"from {axis.low:+.0f} % to {axis.high:+.0f} %" in note
    assert (change_axis([TOLD]), scale_note(None)) == (None, ())


RUN = synthetic_run(n_cases=120)


def test_every_case_has_one_row_as_wide_as_its_table() -> None:
    """In the table of its kind with its own command; failures and then suspects sort before what was not decided."""
    tables = case_tables([observed_run(RUN)], change_axis(RUN.judgements))
    found = {row.judgement.case_id: (table.kind, row) for table in tables for row in table.rows}
    assert len(found) == sum(len(table.rows) for table in tables) == len(RUN.judgements)
    for place, judgement in enumerate(RUN.judgements):
        kind, row = found[judgement.case_id]
        assert (kind, row.judgement.outcome) == (judgement.kind, judgement.outcome)
        assert row.reproduction == reproductions(RUN)[place]
    assert all(len(row.cells) == len(table.columns) for table in tables for row in table.rows)
    order = {row.judgement.outcome: outcome_order(row.judgement) for table in tables for row in table.rows}
    assert max(order[each] for each in order if each.alarms) < min(order[each] for each in order if not each.alarms)
    assert max(order[each] for each in order if each.fails) < order[Outcome.SUSPECT]
    assert order[Outcome.INVALID] < order[Outcome.INCONCLUSIVE] < order[Outcome.PASS]
