"""Faults of a board, over each kind of link: one line each, and the next run has the board."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import LinkError
from tests.device_lock import lock_holder

from ...board_links import LinkedBoard
from .conftest import BoardHome


@pytest.fixture
def linked(linked_board: LinkedBoard, program: Path) -> BoardHome:
    return BoardHome(folder=linked_board.home / "home", program=program, reach=linked_board.reach)


@pytest.mark.parametrize("is_programs", [True, False], ids=["program", "link"])
def test_a_link_that_is_cut_comes_back(linked: BoardHome, is_programs: bool) -> None:
    """What carries a link is killed, or the program there: the board is taken again, and that is noted."""
    board = linked.board()
    board.open()
    before = linked.pid
    link = board.program.link
    if is_programs:
        linked.end()
    else:
        link.pipes._process.kill()
        link.pipes._process.wait(10)
    assert board.covariates()
    assert linked.pid != before
    assert any("the link was lost and came back" in note for note in board.held().notes)
    board.close()
    assert lock_holder(linked.locks) is None


def test_a_board_that_lost_power_after_the_push_is_told(linked: BoardHome) -> None:
    """What was pushed is there, and empty: one line says so, and the next setup fixes it."""
    linked.wrapper.write_bytes(b"")
    with pytest.raises(LinkError) as failed:
        linked.board().open()
    assert "perfsuite devices setup board" in str(failed.value)
    assert str(failed.value).isprintable()
    linked.install()
    board = linked.board()
    assert board.covariates()
    board.close()
