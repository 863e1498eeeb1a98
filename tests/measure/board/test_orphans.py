"""Workers that a killed run has left behind are ended with all that they have started, and no others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psutil
import pytest

from perfsuite.device.lock.place import place_lock
from perfsuite.device.lock.reading import LOCK_NAME
from perfsuite.device.lock.state import LockOwner
from perfsuite.device.process_start import pid_namespace, process_start
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.orphans import end_orphans, end_predecessor, is_worker_command
from perfsuite.measure.environment import LOCK_FOLDER_NAME
from perfsuite.measure.launch import PARENT_NAME, named_parent

from ...board_processes import own_mounts
from ..conftest import is_gone, wait_until
from .conftest import FOREVER_S

_STUBBORN = (
    f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep({FOREVER_S})"
)


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


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that a lock may name."""
    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOREVER_S})"]) as found:
        yield found
        found.kill()


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not heed the first request to end."""
    with subprocess.Popen([sys.executable, "-c", _STUBBORN], stdout=subprocess.PIPE) as found:
        assert found.stdout is not None
        found.stdout.readline()
        yield found
        found.kill()


def claim(folder: Path) -> Claim:
    """Return what a run wants whose locks are in a folder."""
    return Claim(name="pi", user="ada", host="desk", run_id="r1", purpose="a test", lock_folder=str(folder))


def named(folder: Path, pid: int, **changes: object) -> None:
    """Place a lock of that run which names a process."""
    assert place_lock(folder, LockOwner.here(user="ada", host="desk", run_id="r1", purpose="a test")) is not None
    path = folder / LOCK_NAME / "owner.json"
    started = process_start(pid)
    told = {"pid": pid, "start_ticks": started.ticks if started else None, **changes}
    path.write_text(json.dumps({**json.loads(path.read_text()), **told}))


def test_nobody_is_ended_where_there_is_no_lock(tmp_path: Path) -> None:
    """A first agent has no predecessor."""
    assert not end_predecessor(claim(tmp_path))


def test_the_holder_of_this_runs_lock_is_ended(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    """It is asked, and ends."""
    named(tmp_path, process.pid)
    assert end_predecessor(claim(tmp_path))
    assert process.wait(10) == -signal.SIGTERM


def test_one_that_does_not_heed_is_killed(tmp_path: Path, stubborn: subprocess.Popen[bytes]) -> None:
    """After the limit."""
    named(tmp_path, stubborn.pid)
    assert end_predecessor(claim(tmp_path), limit_s=0.3)
    assert stubborn.wait(10) == -signal.SIGKILL


def test_another_accounts_lock_ends_nobody(
    tmp_path: Path, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may place a lock that names this run, and any process of anybody's."""
    named(tmp_path, process.pid)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not end_predecessor(claim(tmp_path), limit_s=0.3)
    assert not is_gone(process.pid)


@pytest.mark.parametrize(
    "changes", [{"start_ticks": None}, {"start_ticks": 1}, {"run_id": "r2"}, {"pid_namespace": "pid:[1]"}]
)
def test_a_process_that_is_not_known_for_sure_is_left(
    tmp_path: Path, process: subprocess.Popen[bytes], changes: dict[str, object]
) -> None:
    """Its start, its run and its namespace have to be those of the lock."""
    named(tmp_path, process.pid, **changes)
    assert not end_predecessor(claim(tmp_path), limit_s=0.3)
    assert not is_gone(process.pid)


def test_a_lock_that_changes_hands_meanwhile_ends_nobody_more(
    tmp_path: Path, stubborn: subprocess.Popen[bytes]
) -> None:
    """Who has the lock after the first request is another one, and is not killed."""
    named(tmp_path, stubborn.pid)
    path = tmp_path / LOCK_NAME / "owner.json"
    later = {**json.loads(path.read_text()), "began_ns": 1}
    program = f"import pathlib, time; time.sleep(0.5); pathlib.Path({str(path)!r}).write_text({json.dumps(later)!r})"
    with subprocess.Popen([sys.executable, "-c", program]):
        assert end_predecessor(claim(tmp_path), limit_s=20.0)
    assert not is_gone(stubborn.pid)


def test_a_kernel_without_handles_of_processes_will_do(
    tmp_path: Path, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is then ended by its number."""

    def missing(_: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", missing)
    named(tmp_path, process.pid)
    assert end_predecessor(claim(tmp_path))
    assert process.wait(10) == -signal.SIGTERM


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
    """Have a process that looks like a worker, and names a parent."""
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
    """It is reported by its number."""
    with worker(GONE) as orphan:
        (note,) = end_orphans([orphan.pid])
        assert note == f"ended the worker {orphan.pid}, which a run that was killed had left behind"
        assert is_gone(orphan.pid)


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


def test_what_it_has_started_is_ended_too() -> None:
    """Also what has a process group of its own."""
    with worker(GONE, _BUSY) as orphan:
        assert orphan.stdout is not None
        child = int(orphan.stdout.readline())
        assert len(end_orphans([orphan.pid])) == 1
        assert wait_until(lambda: is_gone(child))


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


@cache
def can_contain() -> bool:
    """Whether there can be such a container here."""
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
