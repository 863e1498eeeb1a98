"""Tables of all cases."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.observation import CaseWork
from perfsuite.records.outcome import Outcome, told_judgement
from perfsuite.report.page.charts.change import Change
from perfsuite.report.page.page_run import OtherRun
from perfsuite.report.page.rows import (
    CaseSources,
    case_facts,
    case_tables,
    cases_axis,
    columns_for,
    other_value,
    outcome_order,
    scale_note,
    works_by_case,
)
from perfsuite.report.reproduce import reproductions
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

PAIRED_RUN = synthetic_run(n_cases=60)
PAIRED_CASE = next(each for each in PAIRED_RUN.judgements if each.outcome is Outcome.INCONCLUSIVE and each.n_pairs)


def test_a_case_is_set_beside_that_of_another_run() -> None:
    """A dash where the other run has none; a case without times has no facts, one that moves nothing no intensity."""
    assert case_facts(told_judgement("trace/a", "trace", Outcome.PASS, "balanced"), None) == {}
    work = CaseWork(case_id=PAIRED_CASE.case_id, flops=4_000_000, moved_bytes=0)
    assert "Intensity" not in case_facts(PAIRED_CASE, work)
    there = OtherRun(
        label="run 2",
        run=PAIRED_RUN,
        cases={PAIRED_CASE.case_id: replace(PAIRED_CASE, measured_ns=50, outcome=Outcome.PASS)},
    )
    without = OtherRun(label="run 3", run=PAIRED_RUN, cases={})
    first, second = (other_value(replace(PAIRED_CASE, measured_ns=55), each) for each in (there, without))
    assert (first.measured, first.ratio, first.outcome) == ("50.0 ns", "+10.0 %", Outcome.PASS)
    assert (second.measured, second.ratio, second.outcome) == ("-", "-", None)


SMALL_RUN = synthetic_run(n_cases=20)
CASE = replace(
    SMALL_RUN.judgements[0], measured_ns=1_500, expected_ns=1_000, lower_ns=800, upper_ns=1_300, floor_ns=None
)
TOLD = told_judgement("trace/a/b/balance", "trace", Outcome.PASS, "balanced")


def test_a_figure_that_no_case_has_is_no_column() -> None:
    """Columns without any figure are left out; times before are of an old side, a baseline, or of both."""
    titles = [column.title for column in columns_for([CASE, TOLD], ())]
    assert titles == ["Measured", "Tokens/s", "Expected", "Old side", "Change"]
    assert columns_for([TOLD], ()) == ()
    stored = replace(CASE, baseline_samples_ns=())
    for cases, title in (([CASE, TOLD], "Old side"), ([stored], "Baseline"), ([CASE, stored], "Before")):
        assert title in [column.title for column in columns_for(cases, ())]


def test_a_cell_is_sorted_by_its_value() -> None:
    """A figure has its unit and sorts by its nanoseconds; those of the first three other runs are beside it."""
    cells = {column.title: column.cell(CASE) for column in columns_for([CASE], ())}
    assert (cells["Measured"].text, cells["Measured"].order) == ("1.50 µs", 1_500)
    assert (cells["Expected"].text, cells["Expected"].note) == ("1.00 µs", "800 ns to 1.30 µs")
    measured = columns_for([CASE], ())[0]
    assert (measured.cell(TOLD).text, measured.cell(TOLD).order) == ("-", None)
    others = [
        OtherRun(label=f"run {number}", run=SMALL_RUN, cases={CASE.case_id: replace(CASE, measured_ns=number)})
        for number in range(2, 7)
    ]
    found = columns_for([CASE], others)
    assert [column.title for column in found][-3:] == ["Run 2", "Run 3", "Run 4"]
    assert [column.cell(CASE).order for column in found][-3:] == [2, 3, 4]


def test_a_change_is_drawn_on_one_scale() -> None:
    """That of all tables, which is named beside them; a run without changes has none."""
    axis = cases_axis(PAIRED_RUN)
    cells = {column.title: column.cell(PAIRED_CASE) for column in columns_for([PAIRED_CASE], (), axis)}
    assert (change := Change.of(PAIRED_CASE)) is not None
    assert axis is not None
    assert (cells["Change"].text, cells["Change"].drawing) == (change.text, change.drawing(axis))
    (note,) = scale_note(axis)
    assert f"from {axis.low:+.0f} % to {axis.high:+.0f} %" in note
    bare = replace(PAIRED_RUN, judgements=(TOLD,))
    assert (cases_axis(bare), scale_note(None)) == (None, ())


RUN = synthetic_run(n_cases=120)


def sources(run: RunFile) -> CaseSources:
    return CaseSources(
        reproductions=reproductions(run),
        works=works_by_case(synthetic_observation(run)),
        others=(),
    )


def test_every_case_has_one_row_as_wide_as_its_table() -> None:
    """In the table of its kind with its own command; failures and then suspects sort before what was not decided."""
    tables = case_tables(RUN, sources(RUN), cases_axis(RUN))
    found = {row.judgement.case_id: (table.kind, row) for table in tables for row in table.rows}
    assert len(found) == sum(len(table.rows) for table in tables) == len(RUN.judgements)
    for place, judgement in enumerate(RUN.judgements):
        kind, row = found[judgement.case_id]
        assert (kind, row.judgement.outcome) == (judgement.kind, judgement.outcome)
        assert row.reproduction == reproductions(RUN)[place]
    tables = case_tables(RUN, sources(RUN), cases_axis(RUN))
    assert all(len(row.cells) == len(table.columns) for table in tables for row in table.rows)
    assert {table.kind: table.tells_reasons for table in tables}["trace"]
    assert not {table.kind: table.tells_reasons for table in tables}["phase"]
    rows = [row for table in case_tables(RUN, sources(RUN), cases_axis(RUN)) for row in table.rows]
    order = {row.judgement.outcome: outcome_order(row.judgement) for row in rows}
    assert max(order[each] for each in order if each.alarms) < min(order[each] for each in order if not each.alarms)
    assert max(order[each] for each in order if each.fails) < order[Outcome.SUSPECT]
    assert order[Outcome.INVALID] < order[Outcome.INCONCLUSIVE] < order[Outcome.PASS]
