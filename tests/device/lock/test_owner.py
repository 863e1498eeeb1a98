"""What a lock says of the run and of the process that hold it."""

from __future__ import annotations

import os
import time

import pytest

from perfsuite.device.lock.owner import LockOwner
from perfsuite.device.process_start import boot_id, pid_namespace, process_start

THIS_PROCESS = LockOwner.here(user="anna", host="desk", run_id="r1", purpose="pytest --device=board")


def test_this_process_is_described() -> None:
    """The number, the start, the namespace and the boot are those of the process that asks."""
    started = process_start(os.getpid())
    assert started is not None
    assert (THIS_PROCESS.pid, THIS_PROCESS.start_ticks) == (os.getpid(), started.ticks)
    assert (THIS_PROCESS.boot_id, THIS_PROCESS.pid_namespace) == (boot_id(), pid_namespace())
    assert THIS_PROCESS.began_at.endswith("+00:00")


def test_an_owner_survives_being_written() -> None:
    """Reading back what was written gives the same owner."""
    assert LockOwner.from_plain(THIS_PROCESS.to_plain()) == THIS_PROCESS


def test_who_waited_begins_later() -> None:
    """The moment is that of getting the lock, not of asking for it."""
    later = THIS_PROCESS.beginning_now()
    assert THIS_PROCESS.began_ns < later.began_ns <= time.monotonic_ns()
    assert later.run_id == THIS_PROCESS.run_id


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user", 1),
        ("host", None),
        ("pid", "12"),
        ("pid", -1),
        ("pid", 0),
        ("pid", True),
        ("began_ns", None),
        ("began_ns", 2**63),
        ("began_ns", 10**400),
        ("start_ticks", 10**400),
    ],
)
def test_what_is_no_owner_is_refused(name: str, value: object) -> None:
    """A field of another kind is a ValueError that names it."""
    with pytest.raises(ValueError, match=name):
        LockOwner.from_plain({**THIS_PROCESS.to_plain(), name: value})


def test_a_hostile_text_is_shown_harmlessly() -> None:
    """Escape sequences and lines do not reach a terminal, nor does a text without end."""
    read = LockOwner.from_plain({**THIS_PROCESS.to_plain(), "user": "\x1b[2Ja\nb", "purpose": "x" * 10_000})
    assert read.user == "?[2Ja?b"
    assert len(read.purpose) == 300


@pytest.mark.parametrize("folder", [None, 1, "", "relative", "/a\nb", "/" + "x" * 2000])
def test_a_folder_that_is_no_whole_path_is_not_known(folder: object) -> None:
    """Part of a path is another one; a lock of another version names none."""
    assert LockOwner.from_plain({**THIS_PROCESS.to_plain(), "state_folder": folder}).state_folder == ""
    known = LockOwner.from_plain({**THIS_PROCESS.to_plain(), "state_folder": "/home/pi/.cache/perfsuite/device"})
    assert known.state_folder == "/home/pi/.cache/perfsuite/device"
