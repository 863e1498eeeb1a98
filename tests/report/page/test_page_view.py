"""The whole page as a record."""

from __future__ import annotations

from perfsuite.report.page.findings import MAX_CARDS
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.page_view import page_view
from perfsuite.testing.run_files import synthetic_run

from .conftest import observed_run


def run_of(seed: int = 0, n_regressed: int = 5) -> PageRun:
    """A made-up run with what it saw."""
    return observed_run(synthetic_run(n_cases=150, seed=seed, n_regressed=n_regressed))


def test_every_figure_has_one_place() -> None:
    """Figures of the machine and of runs stand in their own sections, all others among the charts."""
    view = page_view([run_of(), run_of(1)])
    placed = [*view.figures, *view.run_figures, *view.machine_figures]
    assert sorted(each.figure_id for each in placed) == sorted(view.specs)
    assert {each.subject for each in view.machine_figures} == {"machine"}
    assert {each.subject for each in view.run_figures} == {"runs"}


def test_more_failures_than_cards_are_lines() -> None:
    """The foremost failures are cards, and none of the others is lost."""
    view = page_view([run_of(n_regressed=40)])
    assert len(view.failure_cards) == MAX_CARDS
    assert len(view.failure_lines) > 10


def test_kinds_are_those_of_the_tables() -> None:
    """The filter offers each kind that there is."""
    view = page_view([run_of()])
    assert [kind for kind, _ in view.kinds] == [table.kind for table in view.tables]
