"""The names under which runs hold places."""

from __future__ import annotations

import os
import re
import socket
import subprocess

import pytest

from perfsuite.device.farm.holder import Holder, holder_named, new_holder


def test_a_name_tells_which_run_it_is_and_since_when() -> None:
    """Host, process and time are read back from what labgrid lists; two names of one process differ."""
    told = holder_named(new_holder().name)
    assert told.pid == os.getpid()
    assert told.is_alive_here
    assert f"on {socket.gethostname()} (run of process {os.getpid()}, since 20" in told.text
    assert new_holder().name != new_holder().name
    assert told.name.count("/") == 1


@pytest.mark.parametrize(
    ("pattern", "replacement", "is_alive"),
    [(r"\.\d+-", ".1-", False), (r"-\w{8}-(\w{6})$", r"-00000000-\1", None)],
    ids=["another start: another process of its number", "another container or boot: its number means nothing here"],
)
def test_a_number_alone_is_no_run(pattern: str, replacement: str, is_alive: bool | None) -> None:
    """The process is still told."""
    user = re.sub(pattern, replacement, new_holder().user)
    told = Holder(host=socket.gethostname(), user=user)
    assert (told.pid, told.is_alive_here) == (os.getpid(), is_alive)


def test_a_run_whose_process_is_gone_is_dead() -> None:
    """Only on the same host can that be told."""
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    user = new_holder().user.replace(f"-{os.getpid()}.", f"-{gone.pid}.")
    assert Holder(host=socket.gethostname(), user=user).is_alive_here is False
    assert Holder(host="elsewhere", user=user).is_alive_here is None


def test_a_person_is_named_as_they_are() -> None:
    """A lock that was taken by hand has no process."""
    told = holder_named("desk/alice")
    assert told.text == "alice on desk"
    assert told.pid is None
    assert told.is_alive_here is None
