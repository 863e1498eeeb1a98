"""A run or command that wants a device names itself in the same words."""

from __future__ import annotations

import os
import socket

import pytest

from perfsuite.device.lock_owner import account_name
from perfsuite.device.reach import Reach
from perfsuite.measure.board.opening import desk_claim
from perfsuite.measure.environment import LOCK_FOLDER_NAME, RUN_ID_NAME


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
