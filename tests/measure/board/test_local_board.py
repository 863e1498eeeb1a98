"""This machine as the board."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.device.conditions import NO_CONDITIONS
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError, GgufError
from perfsuite.measure.board.holding import Claim, Held, Seen
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.opening import choose_board
from perfsuite.measure.board.remote_board import RemoteBoard

CLAIM = Claim(name="pi", user="ada", host="desk", run_id="1", purpose="a test")


def test_it_describes_itself_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are those of this machine; taking it, which may set a governor, lets them be asked for again."""
    board = LocalBoard(cache_dir=tmp_path)
    facts = board.facts()
    assert facts.fingerprint == host_fingerprint()
    assert board.facts() is facts
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.host_fingerprint", lambda: {**facts.fingerprint, "governor": "another"}
    )
    assert board.facts() is facts
    board.open()
    assert board.facts().fingerprint["governor"] == "another"
    board.close()


def test_what_having_it_came_to_is_known_after_the_end(tmp_path: Path) -> None:
    """It is taken once, and what was reported when it was given back is reported, too."""
    notes: list[str] = []

    @contextmanager
    def hold() -> Iterator[Seen]:
        notes.append("taken")
        yield lambda: Held(notes=tuple(notes))
        notes.append("given back")

    board = LocalBoard(cache_dir=tmp_path, hold=hold)
    assert board.held() == Held()
    board.open()
    board.open()
    assert board.held().notes == ("taken",)
    board.close()
    board.close()
    assert board.held().notes == ("taken", "given back")


def test_a_hash_is_no_path(tmp_path: Path) -> None:
    board = LocalBoard(cache_dir=tmp_path)
    for digest in ("../x", "a" * 63, "A" * 64):
        with pytest.raises(GgufError, match="is not a SHA-256"):
            board.put_path(digest)
    assert not board.is_put("a" * 64)


def test_the_way_chooses_the_board(tmp_path: Path) -> None:
    """A local way is this machine; any other is a link, which nothing is asked of yet."""
    local = choose_board(Reach(), NO_CONDITIONS, CLAIM, cache_dir=tmp_path, tell=print)
    assert isinstance(local, LocalBoard)
    remote = choose_board(Reach(way="ssh", address="nowhere"), NO_CONDITIONS, CLAIM, cache_dir=tmp_path, tell=print)
    assert isinstance(remote, RemoteBoard)
    assert not remote.is_local
    remote.close()
    with pytest.raises(DeviceError, match="no way to a device"):
        choose_board(Reach(way="pigeon"), NO_CONDITIONS, CLAIM, cache_dir=tmp_path, tell=print)
