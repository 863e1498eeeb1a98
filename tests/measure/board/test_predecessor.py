"""The agent that a run has left behind is ended, and nobody else is, whatever a lock says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfsuite.device.lock.owner import LockOwner
from perfsuite.device.lock.place import place_lock
from perfsuite.device.lock.reading import LOCK_NAME
from perfsuite.device.process_start import process_start
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.predecessor import end_predecessor

from ..conftest import is_gone
from .conftest import FOREVER_S

#: Does not heed the first request to end.
_STUBBORN = (
    f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep({FOREVER_S})"
)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that a lock may name."""
    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOREVER_S})"]) as found:
        yield found
        found.kill()


def claim(folder: Path) -> Claim:
    """Return what a run wants whose locks lie in a folder."""
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


def test_one_that_does_not_heed_is_killed(tmp_path: Path) -> None:
    """After the limit."""
    with subprocess.Popen([sys.executable, "-c", _STUBBORN], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
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


def test_a_lock_that_changes_hands_meanwhile_ends_nobody_more(tmp_path: Path) -> None:
    """Who has the lock after the first request is another one, and is not killed."""
    with subprocess.Popen([sys.executable, "-c", _STUBBORN], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        named(tmp_path, stubborn.pid)
        path = tmp_path / LOCK_NAME / "owner.json"
        later = {**json.loads(path.read_text()), "began_ns": 1}
        program = (
            f"import pathlib, time; time.sleep(0.5); pathlib.Path({str(path)!r}).write_text({json.dumps(later)!r})"
        )
        with subprocess.Popen([sys.executable, "-c", program]):
            assert end_predecessor(claim(tmp_path), limit_s=20.0)
        assert not is_gone(stubborn.pid)
        stubborn.kill()


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
