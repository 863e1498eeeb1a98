"""The printed values."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.printed import printed_cells
from perfsuite.expectation.paper.reproduction import PAPER_TABLES


def test_a_cell_is_read_with_its_window() -> None:
    """Prompts are integers, variants text; a window includes its ends, and Table 11 prints MiB alone."""
    cell = printed_cells(5)[0]
    assert cell.inputs == (("variant", "bf16-bf16"), ("prompt", 2048))
    assert (cell.metric, cell.printed, cell.accept_low, cell.accept_high) == ("tops", 29.2941, 29.294, 29.2942)
    assert cell.reproducible
    assert [cell.accepts(value) for value in (29.2939, 29.294, 29.2942, 29.2943)] == [False, True, True, False]
    assert {cell.metric for cell in printed_cells(11)} == {None}


@pytest.mark.parametrize("table", PAPER_TABLES)
def test_what_cannot_be_reproduced_has_no_window(table: int) -> None:
    """A window and being reproducible go together, and a window holds the printed value."""
    for cell in printed_cells(table):
        assert (cell.accept_low is not None) is (cell.accept_high is not None) is cell.reproducible
        assert cell.accepts(cell.printed)
