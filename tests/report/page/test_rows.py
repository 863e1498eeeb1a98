"""Tables of all cases."""

from __future__ import annotations

from perfsuite.records.outcome import Outcome
from perfsuite.report.page.rows import CaseSources, case_tables, outcome_order, works_by_case
from perfsuite.report.reproduce import reproductions
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

RUN = synthetic_run(n_cases=120)


def sources(run: RunFile) -> CaseSources:
    """What the rows of a run are made of."""
    return CaseSources(
        reproductions=reproductions(run),
        figure_keys=[f"key {place}" for place in range(len(run.judgements))],
        works=works_by_case(synthetic_observation(run)),
        others=(),
    )


def test_every_case_has_one_row() -> None:
    """Each kind has a table, and each case of the run is in the one of its kind with its own key and command."""
    tables = case_tables(RUN, sources(RUN))
    found = {row.judgement.case_id: (table.kind, row) for table in tables for row in table.rows}
    assert len(found) == sum(len(table.rows) for table in tables) == len(RUN.judgements)
    for place, judgement in enumerate(RUN.judgements):
        kind, row = found[judgement.case_id]
        assert (kind, row.judgement.outcome, row.figure_key) == (judgement.kind, judgement.outcome, f"key {place}")
        assert row.reproduction == reproductions(RUN)[place]


def test_rows_have_a_cell_for_each_column() -> None:
    """Rows are as wide as their table; where there are no figures, the reasons have a column."""
    tables = case_tables(RUN, sources(RUN))
    assert all(len(row.cells) == len(table.columns) for table in tables for row in table.rows)
    assert {table.kind: table.tells_reasons for table in tables}["trace"]
    assert not {table.kind: table.tells_reasons for table in tables}["phase"]


def test_what_fails_is_sorted_first() -> None:
    """Sorted by outcome, failures come before what was not decided, and that before what passed."""
    rows = [row for table in case_tables(RUN, sources(RUN)) for row in table.rows]
    order = {row.judgement.outcome: outcome_order(row.judgement) for row in rows}
    assert max(order[each] for each in order if each.fails) < min(order[each] for each in order if not each.fails)
    assert order[Outcome.INVALID] < order[Outcome.INCONCLUSIVE] < order[Outcome.PASS]
