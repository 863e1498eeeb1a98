"""Workers that a killed run has left behind are ended with all that they have started, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from perfsuite.device.process_start import pid_namespace
from perfsuite.measure.board.orphans import end_orphans, is_worker_command
from perfsuite.measure.environment import LOCK_FOLDER_NAME
from perfsuite.measure.launch import PARENT_NAME, named_parent

from ...board_processes import own_mounts
from ..conftest import is_gone, wait_until
from .conftest import FOREVER_S


@pytest.mark.parametrize(
    ("command", "is_worker"),
    [
        ("python -P -m perfsuite.measure.worker plan record", True),
        ("/home/bundle/0123/perfsuite-worker run plan record", True),
        ("/bin/sh /home/perfsuite-worker run plan record", True),
        ("/home/bundle/0123/perfsuite-worker serve", False),
        ("less perfsuite-worker", False),
        ("", False),
    ],
)
def test_a_worker_is_known_by_its_command(command: str, is_worker: bool) -> None:
    """Python's by its module, the program by its arguments; whoever serves a desk is none."""
    assert is_worker_command(command.split()) is is_worker


_SLEEP = f"import time; time.sleep({FOREVER_S})"

#: Starts something in a process group of its own, says which, and waits.
_BUSY = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {_SLEEP!r}], preexec_fn=lambda: os.setpgid(0, 0))
print(child.pid, flush=True)
time.sleep({FOREVER_S})
"""

#: A parent of a number that no process has.
GONE = f"{2**22 + 1} 1 {pid_namespace()}"


@contextmanager
def worker(parent: str, program: str = _SLEEP) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, "perfsuite.measure.worker"]
    environment = {**os.environ, PARENT_NAME: parent}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert wait_until(lambda: _is_worker(psutil.Process(process.pid)))  # the kernel shows it a moment later
            yield process
        finally:
            process.kill()


def test_one_whose_parent_is_gone_is_ended() -> None:
    """With what it has started, also in a process group of its own."""
    with worker(GONE, _BUSY) as orphan:
        assert orphan.stdout is not None
        child = int(orphan.stdout.readline())
        (note,) = end_orphans([orphan.pid])
        assert note == f"ended the worker {orphan.pid}, which a run that was killed had left behind"
        assert is_gone(orphan.pid)
        assert wait_until(lambda: is_gone(child))


def test_one_whose_parents_number_is_anothers_now_is_ended() -> None:
    """The start tells them apart."""
    pid, ticks, namespace = named_parent().split()
    with worker(f"{pid} {int(ticks) + 1} {namespace}") as orphan:
        assert len(end_orphans([orphan.pid])) == 1


@pytest.mark.parametrize(
    "parent",
    [named_parent(), "", "1", f"{2**22 + 1} 1 pid:[1]", f"{2**22 + 1} ? {pid_namespace()}", "a b c"],
    ids=["alive", "nothing", "one word", "another namespace", "no start", "no numbers"],
)
def test_others_go_on(parent: str) -> None:
    """Whose parent lives, or is of another namespace, or is not known, may be measuring for somebody."""
    with worker(parent) as healthy:
        assert end_orphans([healthy.pid]) == ()
        assert not is_gone(healthy.pid)


def test_one_by_another_lock_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two whose locks are in different folders, as of two checkouts' tests, leave each other's workers alone."""
    with worker(GONE) as other:
        monkeypatch.setenv(LOCK_FOLDER_NAME, str(tmp_path))
        assert end_orphans([other.pid]) == ()
        assert not is_gone(other.pid)


def test_another_accounts_orphan_is_told_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It disturbs, and is that account's to end."""
    with worker(GONE) as orphan:
        monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
        (note,) = end_orphans([orphan.pid])
        assert not is_gone(orphan.pid)
    name = psutil.Process().username()
    assert note.startswith(f"the worker {orphan.pid} of the account {name} was left behind by a run that was killed")


def test_a_closed_environment_is_judged_by_the_parent_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another account's worker no more can be seen than that it has lost its parent."""

    def closed(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "environ", closed)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with worker(GONE) as orphan:
        assert end_orphans([orphan.pid]) == ()
        monkeypatch.setattr(psutil.Process, "ppid", lambda _: 1)
        assert len(end_orphans([orphan.pid])) == 1


#: Gives a program processes of its own, as a container does.
_CONTAINER = (*own_mounts(), "--pid", "--fork", "--mount-proc", "--kill-child")


def can_contain() -> bool:
    if os.getuid() != 0 or not own_mounts():
        return False
    return subprocess.run([*_CONTAINER, "true"], stderr=subprocess.DEVNULL, check=False, timeout=20).returncode == 0


@pytest.mark.skipif(not can_contain(), reason="needs root, unshare, and mounts of its own")
def test_a_worker_of_a_container_goes_on(tmp_path: Path) -> None:
    """Its parent has another number there than here, and lives."""
    program = (
        "import os, subprocess, sys; from perfsuite.measure.launch import PARENT_NAME, named_parent;"
        f"subprocess.run([sys.executable, '-c', {_SLEEP!r}, 'perfsuite.measure.worker'],"
        "env={**os.environ, PARENT_NAME: named_parent()})"
    )
    with subprocess.Popen([*_CONTAINER, sys.executable, "-c", program]) as container:
        try:
            inside = psutil.Process(container.pid)
            assert wait_until(lambda: any(_is_worker(each) for each in inside.children(recursive=True)))
            (found,) = (each.pid for each in inside.children(recursive=True) if _is_worker(each))
            assert end_orphans([found]) == ()
            assert not is_gone(found)
        finally:
            container.kill()


def _is_worker(process: psutil.Process) -> bool:
    return "perfsuite.measure.worker" in process.cmdline()
