"""The names under which runs hold places."""

from __future__ import annotations

import os
import re
import socket
import subprocess

from perfsuite.device.farm.holder import Holder, holder_named, new_holder


def test_each_run_has_a_name_of_its_own() -> None:
    """Two names of one process differ, so that labgrid tells its runs apart."""
    first, second = new_holder(), new_holder()
    assert first.name != second.name
    assert first.name.count("/") == 1


def test_a_name_tells_which_run_it_is_and_since_when() -> None:
    """Host, process and time are read back from what labgrid lists."""
    told = holder_named(new_holder().name)
    assert told.pid == os.getpid()
    assert told.is_alive_here
    assert f"on {socket.gethostname()} (run of process {os.getpid()}, since 20" in told.text


def test_a_run_whose_process_is_gone_is_dead() -> None:
    """Only on the same host can that be told."""
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    user = new_holder().user.replace(f"-{os.getpid()}.", f"-{gone.pid}.")
    assert Holder(host=socket.gethostname(), user=user).is_alive_here is False
    assert Holder(host="elsewhere", user=user).is_alive_here is None


def test_a_process_that_has_the_number_of_a_run_that_is_gone_is_not_taken_for_it() -> None:
    """It started at another time than the run."""
    alive = new_holder()
    ticks = re.sub(r"\.\d+-", ".1-", alive.user)
    assert Holder(host=alive.host, user=ticks).is_alive_here is False


def test_of_a_run_in_another_container_or_boot_nothing_is_said() -> None:
    """Its number means another process here, or none."""
    alive = new_holder()
    elsewhere = re.sub(r"-\w{8}-(\w{6})$", r"-00000000-\1", alive.user)
    assert elsewhere != alive.user
    assert Holder(host=alive.host, user=elsewhere).pid == os.getpid()
    assert Holder(host=alive.host, user=elsewhere).is_alive_here is None


def test_a_person_is_named_as_they_are() -> None:
    """A lock that was taken by hand has no process."""
    told = holder_named("desk/alice")
    assert told.text == "alice on desk"
    assert told.pid is None
    assert told.is_alive_here is None
