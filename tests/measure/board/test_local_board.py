"""This machine as the board; by which name a board is known, and who wants it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.lock_owner import account_name
from perfsuite.device.reach import Reach
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.opening import desk_claim
from perfsuite.measure.board.protocol import board_name
from perfsuite.measure.environment import LOCK_FOLDER_NAME, RUN_ID_NAME


def test_it_describes_itself_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are those of this machine; taking it, which may set a governor, lets them be asked for again."""
    board = LocalBoard(cache_dir=tmp_path)
    facts = board.facts()
    assert facts.fingerprint == host_fingerprint()
    assert board.facts() is facts
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.host_fingerprint", lambda _: {**facts.fingerprint, "governor": "another"}
    )
    assert board.facts() is facts
    board.open()
    assert board.facts().fingerprint["governor"] == "another"
    board.close()


def test_this_machine_is_kept_by_its_kind(tmp_path: Path) -> None:
    """What is kept of it is that of its kind, though it has a name as well."""
    here = LocalBoard(cache_dir=tmp_path)
    facts, name = here.facts(), board_name(here)
    assert (name.identity, name.hostname, name.kept_by) == (facts.identity, facts.hostname, None)


@pytest.mark.parametrize("way", ["local", "ssh", "adb"])
def test_a_claim_says_who_it_is(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account that runs it, whatever the environment calls it, and this desk; what was asked for stays."""
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.delenv(RUN_ID_NAME, raising=False)
    claim = desk_claim("pi", Reach(way=way), purpose="pytest --device=pi", run_id="r", wait_s=5.0)
    assert (claim.user, claim.host) == (account_name(os.getuid()), socket.gethostname())
    assert (claim.name, claim.purpose, claim.run_id, claim.wait_s) == ("pi", "pytest --device=pi", "r", 5.0)


@pytest.mark.parametrize(("way", "run_id", "folder"), [("local", "outer", "/locks"), ("ssh", "r", None)])
def test_what_the_environment_says_is_of_this_machine(
    way: str, run_id: str, folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that has started this program, and the place of locks, are nothing to a board."""
    monkeypatch.setenv(RUN_ID_NAME, "outer")
    monkeypatch.setenv(LOCK_FOLDER_NAME, "/locks")
    claim = desk_claim("pi", Reach(way=way), purpose="x", run_id="r")
    assert (claim.run_id, claim.lock_folder) == (run_id, folder)
