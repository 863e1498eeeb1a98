"""Faults of a board without Python, over each kind of link: one line each, and the next run has the board."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.device.lock import lock_holder
from perfsuite.device.target.opening import open_target
from perfsuite.errors import LinkError, LockedError
from perfsuite.measure.board.hello import PREAMBLE

from ...board_links import LINKED, LinkedBoard
from ...board_links import linked_board as made_linked_board
from .conftest import BoardHome


@pytest.fixture
def linked(linked_board: LinkedBoard, program: Path) -> BoardHome:
    """Return a board at the end of each kind of link, with a bundle."""
    return BoardHome(folder=linked_board.home / "home", program=program, reach=linked_board.reach)


@pytest.mark.parametrize("is_agents", [True, False], ids=["agent", "link"])
def test_a_link_that_is_cut_comes_back(linked: BoardHome, is_agents: bool) -> None:
    """What carries a link is killed, or the program there: the board is taken again, and that is noted."""
    board = linked.board()
    board.open()
    before = linked.pid
    link = board._link._link
    assert link is not None
    if is_agents:
        linked.end()
    else:
        link.pipes._process.kill()
    assert board.covariates()
    assert linked.pid != before
    assert any("the link was lost and came back" in note for note in board.held().notes)
    board.close()
    assert lock_holder(linked.locks) is None


def test_two_desks_are_told_apart(linked: BoardHome) -> None:
    first = linked.board()
    first.open()
    with pytest.raises(LockedError, match=r"^board: held by ada from desk"):
        linked.board(hello=linked.hello(run_id="run-2")).open()
    assert first.covariates()
    first.close()


def test_a_board_that_lost_power_after_the_push_is_told(linked: BoardHome) -> None:
    """What was pushed is there, and empty: one line says so, and the next setup fixes it."""
    linked.agent.write_bytes(b"")
    with pytest.raises(LinkError) as failed:
        linked.board().open()
    assert "perfsuite devices setup board" in str(failed.value)
    assert str(failed.value).isprintable()
    linked.install()
    board = linked.board()
    assert board.covariates()
    board.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted, which needs root")
@pytest.mark.parametrize("way", [each for each in LINKED if each != "ssh"])
def test_a_full_disk_is_told(way: str, tmp_path: Path) -> None:
    """A push onto it says so in the device's words and leaves nothing; over ssh see tests/device/target."""
    (tmp_path / "large").write_bytes(b"x" * 3_000_000)
    with made_linked_board(way, tmp_path / "board") as board, small_disk(board.home / "place") as place:
        target = open_target(board.reach)
        with pytest.raises(LinkError, match=r"No space left on device; free some space there"):
            target.put(tmp_path / "large", str(place / "x"))
        assert not list(place.iterdir())
        target.close()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Let a folder be a disk of 1 MB."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"\377\377\377\377", "is not the suite's program"),
        (PREAMBLE + b"\377\377\377\377garbage", "bytes"),
        (b"\033[2Jnot an agent\n", "lost|ended"),
    ],
)
def test_a_hostile_answer_is_one_line(linked: BoardHome, said: bytes, told: str) -> None:
    (linked.folder / "said").write_bytes(said)
    linked.python(f"cat {linked.folder}/said; exit 0")
    with pytest.raises(LinkError, match=told) as failed:
        linked.board().open()
    assert str(failed.value).isprintable()
