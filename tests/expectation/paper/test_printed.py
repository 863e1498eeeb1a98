"""The printed values."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.printed import printed_cells
from perfsuite.expectation.paper.reproduction import PAPER_TABLES


def test_a_cell_is_read_with_its_window() -> None:
    """Inputs keep the table's columns; prompts are integers, variants text."""
    cell = printed_cells(5)[0]
    assert cell.inputs == (("variant", "bf16-bf16"), ("prompt", 2048))
    assert (cell.metric, cell.printed, cell.accept_low, cell.accept_high) == ("tops", 29.2941, 29.294, 29.2942)
    assert cell.reproducible


def test_a_table_of_one_metric_has_no_metric() -> None:
    """Table 11 prints MiB alone."""
    assert {cell.metric for cell in printed_cells(11)} == {None}


def test_a_window_includes_its_ends() -> None:
    """The least and the most that a cell accepts are inside, what is beyond is not."""
    cell = printed_cells(5)[0]
    assert [cell.accepts(value) for value in (29.2939, 29.294, 29.2942, 29.2943)] == [False, True, True, False]


@pytest.mark.parametrize("table", PAPER_TABLES)
def test_what_cannot_be_reproduced_has_no_window(table: int) -> None:
    """A window and being reproducible go together, and a window holds the printed value."""
    for cell in printed_cells(table):
        assert (cell.accept_low is not None) is (cell.accept_high is not None) is cell.reproducible
        assert cell.accepts(cell.printed)
