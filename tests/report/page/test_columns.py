"""Columns of the tables of cases."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.judgement import told_judgement
from perfsuite.records.outcome import Outcome
from perfsuite.report.page.columns import columns_for
from perfsuite.report.page.other_runs import OtherRun
from perfsuite.testing.run_files import synthetic_run

SMALL_RUN = synthetic_run(n_cases=20)
CASE = replace(
    SMALL_RUN.judgements[0], measured_ns=1_500, expected_ns=1_000, lower_ns=800, upper_ns=1_300, floor_ns=None
)
TOLD = told_judgement("trace/a/b/balance", "trace", Outcome.PASS, "balanced")


def test_a_figure_that_no_case_has_is_no_column() -> None:
    """Columns without any figure are left out; where cases are told in words alone, none is left."""
    titles = [column.title for column in columns_for([CASE, TOLD], ())]
    assert titles == ["Measured", "Tokens/s", "Expected", "Old side", "Change"]
    assert columns_for([TOLD], ()) == ()


def test_the_times_before_have_their_name() -> None:
    """Cases of pairs have an old side, others a baseline; where a table has both, it is what was before."""
    stored = replace(CASE, baseline_samples_ns=())
    for cases, title in (([CASE, TOLD], "Old side"), ([stored], "Baseline"), ([CASE, stored], "Before")):
        assert title in [column.title for column in columns_for(cases, ())]


def test_a_cell_is_sorted_by_its_value() -> None:
    """A figure is shown with its unit and sorted by its nanoseconds; one that is not known has no place."""
    cells = {column.title: column.cell(CASE) for column in columns_for([CASE], ())}
    assert (cells["Measured"].text, cells["Measured"].order) == ("1.50 µs", 1_500)
    assert (cells["Expected"].text, cells["Expected"].note) == ("1.00 µs", "800 ns to 1.30 µs")
    measured = columns_for([CASE], ())[0]
    assert (measured.cell(TOLD).text, measured.cell(TOLD).order) == ("-", None)


def test_other_runs_have_columns_up_to_three() -> None:
    """What each of the first other runs measured of the same case stands beside it."""
    others = [
        OtherRun(label=f"run {number}", run=SMALL_RUN, cases={CASE.case_id: replace(CASE, measured_ns=number)})
        for number in range(2, 7)
    ]
    found = columns_for([CASE], others)
    assert [column.title for column in found][-3:] == ["Run 2", "Run 3", "Run 4"]
    assert [column.cell(CASE).order for column in found][-3:] == [2, 3, 4]
