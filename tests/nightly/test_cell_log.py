"""What is read out of a cell's log."""

from __future__ import annotations

import pytest

from perfsuite.nightly.cell_log import borrowed_place, broken_reason, has_waited

FRAME = ["====== test session starts ======", "collected 3 items"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["ERROR: no such device", "perfsuite: gave attic-1 back"], "no such device"),
        (
            ["perfsuite: error: ssh board: the link was lost", "====== 1 error in 2 s ======"],
            "ssh board: the link was lost",
        ),
        ([*FRAME, "perfsuite: borrowed attic-1 (ssh a) as me", "perfsuite: gave attic-1 back"], "collected 3 items"),
        (["Segmentation fault", "!!!!!!!!", "cases/test_phase.py ...   [ 50%]"], "Segmentation fault"),
        (["E   assert 1 == 2", "1 failed"], "assert 1 == 2"),
        (["======"], ""),
        ([], ""),
    ],
)
def test_the_reason_is_the_last_line_that_says_one(lines: list[str], reason: str) -> None:
    """What a farm, a frame or the progress says is none; without any that says why it is the last with words."""
    assert broken_reason(lines) == reason


def test_a_board_and_a_wait_are_seen() -> None:
    """Neither is where the log does not say it."""
    assert borrowed_place(["perfsuite: borrowed attic-1 (ssh root@attic) as me"]) == "attic-1"
    assert borrowed_place(["perfsuite: waiting for a board with board=rubikpi: attic-1 is locked"]) is None
    assert has_waited(["perfsuite: host: somebody has it; waiting for it, 600 s at most"])
    assert not has_waited(FRAME)
