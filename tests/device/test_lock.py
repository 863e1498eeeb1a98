"""One run at a time on a device, with real processes that contend for it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from perfsuite.device import lock
from perfsuite.device.lock import LOCK_NAME, HeldLock, end_holder, hold_lock, lock_folders, lock_holder
from perfsuite.device.lock_owner import LockOwner, account_name
from perfsuite.errors import DeviceError, LockedError

from .lock_processes import first_line, held_by, owner_called, started_holder

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another account")

#: An account of other people.
NOBODY = 65534

_STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp, in which every account can make files, and remove none but its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o1777)
        yield Path(made)


def holder(folder: Path) -> LockOwner:
    owner = lock_holder(folder)
    assert owner is not None
    return owner


def refusal(folder: Path, user: str = "ben", wait_s: float = 0.0) -> str:
    contender = hold_lock(owner_called(user), name="board", folder=folder, wait_s=wait_s)
    with pytest.raises((LockedError, DeviceError)) as told, contender:
        pytest.fail("both have it")
    return str(told.value)


def taken(folder: Path, user: str = "ben") -> HeldLock:
    """Take the lock of a folder and give it back; return how it was come by."""
    with hold_lock(owner_called(user), folder=folder) as held:
        assert holder(folder).user == user
    return held


def test_a_lock_is_given_back(tmp_path: Path) -> None:
    with suppress(KeyError), hold_lock(owner_called("anna"), folder=tmp_path):
        assert holder(tmp_path).pid == os.getpid()
        raise KeyError
    assert [(each.name, each.stat().st_mode, each.stat().st_size) for each in tmp_path.iterdir()] == [
        (LOCK_NAME, 0o100666, 0)
    ]
    assert lock_holder(tmp_path) is None
    assert taken(tmp_path).notes == ()


def test_a_second_run_is_refused_with_the_first_named(tmp_path: Path) -> None:
    with held_by(tmp_path, "anna") as process:
        line = refusal(tmp_path)
        assert refusal(tmp_path, wait_s=1.0).endswith("; waited 1 s for it")
    who = r"board: held by anna from desk \(pytest --device=board\), account \S+ there since 2\d{3}-.*\+00:00"
    todo = "'perfsuite devices unlock board --force' ends it; .*--perf-wait=10m"
    assert re.fullmatch(f"{who}, process {process.pid}; {todo}", line)


@pytest.mark.parametrize("user", ["anna", "ben"])
def test_a_killed_holder_holds_nothing(tmp_path: Path, user: str) -> None:
    with held_by(tmp_path, "anna") as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert lock_holder(tmp_path) is None
        (note,) = taken(tmp_path, user).notes
    assert note.startswith("the run before this one was killed: anna from desk (pytest --device=board)")
    assert taken(tmp_path).notes == ()


def test_what_a_run_starts_does_not_keep_the_lock(tmp_path: Path) -> None:
    starts = "Popen(['sleep', '60'], stdout=subprocess.DEVNULL, close_fds=False)"
    process = started_holder(tmp_path, "anna", within=f"import subprocess; print(subprocess.{starts}.pid, flush=True)")
    orphan = int(first_line(process))
    try:
        assert first_line(process) == "held"
        process.kill()
        process.communicate()
        assert lock_holder(tmp_path) is None
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_a_forked_child_neither_gives_the_lock_back_nor_keeps_it(tmp_path: Path) -> None:
    """A copy of the process that unwinds leaves the lock to the one that took it, and loses it with that."""
    context = hold_lock(owner_called("anna"), folder=tmp_path)
    context.__enter__()
    child = os.fork()
    if child == 0:
        context.__exit__(None, None, None)
        signal.pause()
    try:
        time.sleep(0.1)
        assert holder(tmp_path).user == "anna"
        context.__exit__(None, None, None)
        assert lock_holder(tmp_path) is None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_processes_of_one_run_share_the_lock(tmp_path: Path) -> None:
    """A run that starts another one under its own id does not wait for itself, and keeps the lock until it ends."""
    with hold_lock(owner_called("anna"), folder=tmp_path) as outer:
        with held_by(tmp_path, "anna"):
            assert holder(tmp_path).pid == os.getpid()
        with hold_lock(owner_called("anna"), folder=tmp_path) as inner:
            assert inner.shared == holder(tmp_path)
        assert (inner.is_lost, outer.is_lost) == (False, False)
        assert holder(tmp_path).pid == os.getpid()


def test_an_inner_process_notices_that_the_lock_is_lost(tmp_path: Path) -> None:
    """Where whoever has it for the run is killed, others may measure from then on."""
    with held_by(tmp_path, "anna") as process, hold_lock(owner_called("anna"), folder=tmp_path) as inner:
        assert not inner.is_lost
        process.kill()
        process.wait()
        assert inner.is_lost
        with hold_lock(owner_called("ben"), folder=tmp_path):
            assert inner.is_lost
    assert inner.is_lost


def test_a_lock_that_is_removed_is_lost(tmp_path: Path) -> None:
    with hold_lock(owner_called("anna"), folder=tmp_path) as held:
        (tmp_path / LOCK_NAME).unlink()
        assert held.is_lost
        with hold_lock(owner_called("ben"), folder=tmp_path) as other:
            assert not other.is_lost
    assert (held.is_lost, other.is_lost) == (True, False)


def test_who_waits_is_told_once_and_gets_it(tmp_path: Path) -> None:
    told: list[str] = []
    with held_by(tmp_path, "anna") as process:

        def tell(line: str) -> None:
            told.append(line)
            threading.Timer(0.2, process.kill).start()

        with hold_lock(owner_called("ben"), name="board", folder=tmp_path, wait_s=20.0, tell=tell):
            assert holder(tmp_path).user == "ben"
    (line,) = told
    assert line.startswith("board: held by anna from desk (pytest --device=board)")
    assert line.endswith("; waiting for it, 20 s at most")


def test_of_many_at_once_one_has_it(tmp_path: Path) -> None:
    processes = [started_holder(tmp_path, f"user{number}") for number in range(6)]
    lines = [first_line(process) for process in processes]
    for process in processes:
        process.communicate(timeout=20)
    (winner,) = (number for number, line in enumerate(lines) if line == "held")
    assert all(f"held by user{winner} " in line for line in lines if line != "held")


def test_many_who_wait_come_one_after_the_other(tmp_path: Path) -> None:
    processes = [started_holder(tmp_path, f"user{number}", wait_s=30.0) for number in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    assert [process.communicate(timeout=40)[0].strip() for process in processes] == ["held"] * 3


def test_who_only_looks_keeps_nobody_off(tmp_path: Path) -> None:
    """A look at the lock locks it for a moment, in which a run that takes it tries again."""
    taken(tmp_path)
    with (tmp_path / LOCK_NAME).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        threading.Timer(0.05, fcntl.flock, (file, fcntl.LOCK_UN)).start()
        taken(tmp_path)


def test_those_with_one_folder_contend_with_those_with_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    monkeypatch.setattr(lock, "lock_folders", lambda: (first, second))
    with pytest.raises(DeviceError, match=r"cannot be taken: .*none \(No such file or directory\); make one"):
        taken(tmp_path / "none")
    with hold_lock(owner_called("anna")):
        first.mkdir()
        assert "held by anna" in refusal(second)
        with pytest.raises(LockedError, match="held by anna"), hold_lock(owner_called("ben")):
            pytest.fail("both have it")
    with hold_lock(owner_called("anna")):
        assert "held by anna" in refusal(first)
        assert "held by anna" in refusal(second)


def test_the_folders_are_known_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They do not depend on a user's TMPDIR, unless there is no other that can be written."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert lock_folders()
    assert tmp_path not in lock_folders()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert lock_folders()[-1] == tmp_path


@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe", "name"])
def test_what_is_no_lock_is_refused(tmp_path: Path, kind: str) -> None:
    """No link is followed, no pipe waited for, and a file that has another name too is not written to."""
    path, other = tmp_path / LOCK_NAME, tmp_path / "other"
    other.write_text("mine")
    {
        "link": lambda: path.symlink_to(other),
        "dangling": lambda: path.symlink_to(tmp_path / "none"),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "name": lambda: os.link(other, path),
    }[kind]()
    with pytest.raises(DeviceError, match=r"perfsuite\.lock: is not a lock of perfsuite's.*; remove it"):
        lock_holder(tmp_path)
    assert "is not a lock of perfsuite's" in refusal(tmp_path)
    assert other.read_text() == "mine"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"user": 1}', b"[" * 20_000, b'{"pid": 0}'])
def test_nonsense_in_the_file_keeps_the_lock_and_nothing_else(tmp_path: Path, content: bytes) -> None:
    """A lock that is held by nobody knows whom is held; one that is free is taken all the same."""
    (tmp_path / LOCK_NAME).write_bytes(content)
    assert taken(tmp_path).notes == ()
    with held_by(tmp_path, "anna"):
        (tmp_path / LOCK_NAME).write_bytes(content)
        line = refusal(tmp_path)
    assert f"held by a run of which {tmp_path / LOCK_NAME} does not say whose it is" in line


def test_what_an_owner_says_is_cut_and_printable() -> None:
    """Anybody may write anything into a lock; the account is a number where it has no name."""
    plain = owner_called("anna").to_plain()
    owner = LockOwner.from_plain({**plain, "user": "a\x1b[31m" + "n" * 1000, "state_folder": "etc", "more": 1})
    assert (owner.user[:6], len(owner.user), owner.state_folder) == ("a?[31m", 300, "")
    for wrong in ({"pid": 0}, {"pid": True}, {"pid": 10**400}, {"user": None}):
        with pytest.raises(ValueError, match=r"pid|user"):
            LockOwner.from_plain({**plain, **wrong})
    assert account_name(2**31 - 7) == str(2**31 - 7)


@pytest.mark.parametrize("within", ["", _STUBBORN])
def test_a_holder_is_ended(tmp_path: Path, within: str) -> None:
    with held_by(tmp_path, "anna", within=within) as process:
        end_holder(holder(tmp_path), tmp_path, limit_s=0.3 if within else 20.0)
        assert lock_holder(tmp_path) is None
        assert process.wait(10) == -(signal.SIGKILL if within else signal.SIGTERM)


def test_a_process_that_does_not_have_the_file_open_is_left(tmp_path: Path) -> None:
    """Anybody may write any process into the file; and where somebody else has the lock by now, nobody is ended."""
    with subprocess.Popen(["sleep", "60"]) as victim, held_by(tmp_path, "anna") as process:
        true = holder(tmp_path)
        forged = json.dumps({**true.to_plain(), "pid": victim.pid})
        (tmp_path / LOCK_NAME).write_text(forged)
        with pytest.raises(LockedError, match="cannot be ended from here"):
            end_holder(holder(tmp_path), tmp_path, limit_s=0.3)
        end_holder(true, tmp_path, limit_s=0.3)
        assert (victim.poll(), process.poll()) == (None, None)
        victim.kill()


@needs_root
def test_accounts_share_one_lock(shared: Path) -> None:
    assert lock_holder(shared) is None
    with held_by(shared, "anna"):
        process = started_holder(shared, "ben", uid=NOBODY)
        assert "held by anna from desk" in first_line(process)
        process.communicate()
    with held_by(shared, "ben", uid=NOBODY) as process:
        assert f"account {account_name(NOBODY)} there" in refusal(shared, "anna")
        process.kill()
    (note,) = taken(shared, "anna").notes
    assert "was killed: ben from desk" in note


#: Tries to end who has the lock of the folder above.
_ENDING = """
from perfsuite.device.lock import end_holder, lock_holder
try:
    end_holder(lock_holder(folder.parent), folder.parent, limit_s=0.3)
except PerfsuiteError as error:
    print(error, flush=True)
"""


@needs_root
def test_another_account_cannot_end_a_run(shared: Path) -> None:
    own = shared / "own"
    own.mkdir()
    own.chmod(0o777)
    with held_by(shared, "anna"):
        process = started_holder(own, "ben", uid=NOBODY, within=_ENDING)
        assert "cannot be ended from here; end it as that account, or as root" in first_line(process)
        process.communicate()
        assert holder(shared).user == "anna"


@pytest.mark.parametrize(("mode", "is_restored"), [(0o755, True), (0o777, False)])
def test_a_killed_run_names_what_must_be_restored(tmp_path: Path, mode: int, is_restored: bool) -> None:
    """Where only this account can have put it there; else the note says where it is."""
    kept = tmp_path / "kept"
    kept.mkdir()
    kept.chmod(mode)
    left = {**owner_called("anna").to_plain(), "state_folder": str(kept)}
    (tmp_path / LOCK_NAME).write_text(json.dumps(left))
    held = taken(tmp_path)
    assert held.left_folders == ((kept,) if is_restored else ())
    assert (str(kept) in held.notes[0]) is not is_restored


#: Takes a lock again and again, while a timer breaks in at any moment; says whether it is free afterwards.
_INTERRUPTED = """
import random, signal, sys
from pathlib import Path
from perfsuite.device.lock import hold_lock, lock_holder
from perfsuite.device.lock_owner import LockOwner

class Ended(BaseException):
    pass

def ending(*_):
    raise Ended

signal.signal(signal.SIGALRM, ending)
folder, n_left, n_ended = Path(sys.argv[1]), 0, 0
for number in range(300):
    owner = LockOwner.here(user="anna", host="desk", run_id=str(number), purpose="p")
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 5e-4))
        with hold_lock(owner, folder=folder):
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Ended:
        n_ended += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    n_left += lock_holder(folder) is not None
print(n_ended > 0, n_left)
"""


def test_a_signal_while_the_lock_is_taken_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _INTERRUPTED, str(tmp_path)]
    uncovered = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(  # an exception in the middle of coverage's own locking would leave that locked
        command, capture_output=True, text=True, check=False, env=uncovered, timeout=60
    )
    assert (done.stdout, done.stderr) == ("True 0\n", "")
