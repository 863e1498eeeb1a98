"""One run at a time on a device, with real processes that contend for it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from perfsuite.device.lock import break_lock, hold_lock, lock_state
from perfsuite.device.lock.place import PlacedLock, place_lock
from perfsuite.device.lock.reading import LOCK_NAME
from perfsuite.device.lock.state import Holder, LockOwner, LockState
from perfsuite.errors import DeviceError, LockedError

from .lock_processes import ended, first_line, held_by, let_go, owner_called, started_holder


def state_of(folder: Path) -> LockState:
    """Return the lock that is in a folder."""
    state = lock_state(folder)
    assert state is not None
    return state


def user_of(folder: Path) -> str:
    """Return whose lock is in a folder."""
    owner = state_of(folder).owner
    assert owner is not None
    return owner.user


def broken(folder: Path, *, force: bool = False) -> LockState:
    """Break the lock that is in a folder."""
    state = break_lock(folder, force=force)
    assert state is not None
    return state


def refusal(folder: Path, wait_s: float = 0.0) -> str:
    """Return the line with which a run of Ben's is refused."""
    ben = hold_lock(owner_called("ben"), name="board", folder=folder, wait_s=wait_s)
    with pytest.raises((LockedError, DeviceError)) as told, ben:
        pass
    return str(told.value)


def earlier_boot(folder: Path) -> None:
    """Make the lock of a folder one from before the machine started."""
    path = folder / LOCK_NAME / "owner.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot_id": "another"}))


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two folders in which the lock of this machine can lie."""
    both = tmp_path / "first", tmp_path / "second"
    for each in both:
        each.mkdir()
    monkeypatch.setattr("perfsuite.device.lock.holding.lock_folders", lambda: both)
    return both


def killed(process: subprocess.Popen[str]) -> None:
    """End a process as nothing can that it hears of."""
    process.kill()
    process.wait()


def test_a_lock_is_given_back(tmp_path: Path) -> None:
    """After the run nothing is left in the folder, also where the run failed: no state, and nothing to break."""
    held = hold_lock(owner_called("anna"), folder=tmp_path)
    held.__enter__()
    assert [each.name for each in tmp_path.iterdir()] == [LOCK_NAME]
    assert not held.__exit__(KeyError, KeyError(), None)
    assert list(tmp_path.iterdir()) == []
    assert lock_state(tmp_path) is None
    assert break_lock(tmp_path) is None


def test_a_second_run_is_refused_with_the_first_named(tmp_path: Path) -> None:
    """The line says who, from where, doing what, how long ago its heart beat, and how long it was waited for."""
    with held_by(tmp_path, "anna"):
        line = refusal(tmp_path)
        assert refusal(tmp_path, wait_s=1.0).endswith("; waited 1 s for it")
    assert line.startswith("board: held by anna from desk (pytest --device=board)")
    assert re.search(r" since 2\d{3}-.*\+00:00 \(\d s\); its last heartbeat was 0 s ago; wait .*--perf-wait=10m$", line)


def test_a_killed_holder_is_told_and_not_broken(tmp_path: Path) -> None:
    """After kill -9 the lock stays; the line says at once that the process is gone, and how to break the lock."""
    with held_by(tmp_path, "anna") as process:
        killed(process)
        line = refusal(tmp_path, wait_s=60.0)
        assert broken(tmp_path).holder is Holder.GONE
    assert f"its process {process.pid} is gone, crashed or killed" in line
    assert line.endswith("'perfsuite devices unlock board' breaks the lock")
    with hold_lock(owner_called("ben"), folder=tmp_path):
        assert user_of(tmp_path) == "ben"


def test_a_killed_holder_that_nobody_has_waited_for_is_gone(tmp_path: Path) -> None:
    """A process that is only still in its parent's table (a zombie) holds nothing."""
    with held_by(tmp_path, "anna") as process:
        process.kill()
        time.sleep(0.3)
        assert state_of(tmp_path).holder is Holder.GONE


def test_a_stopped_holder_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is there and silent for too long hangs; its lock can be broken without force."""
    monkeypatch.setattr("perfsuite.device.lock.state.SILENCE_LIMIT_S", 0.3)
    with held_by(tmp_path, "anna") as process:
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        line = refusal(tmp_path)
        assert broken(tmp_path).holder is Holder.HANGS
    assert re.search(rf"its process {process.pid} is there and hangs: its last heartbeat was \d+ s ago; end that", line)


def test_a_living_holder_is_broken_by_force_only(tmp_path: Path) -> None:
    """Without force it is refused; with it the lock goes, the run notices, and leaves that of whoever has it now."""
    with hold_lock(owner_called("anna"), folder=tmp_path) as held:
        with pytest.raises(LockedError, match=r"held by anna.*--force"):
            break_lock(tmp_path)
        held.beat()
        assert not held.is_lost
        assert broken(tmp_path, force=True).holder is Holder.RUNS
        with hold_lock(owner_called("ben"), folder=tmp_path):
            held.beat()
            assert held.is_lost
    assert list(tmp_path.iterdir()) == []
    anna = hold_lock(owner_called("anna"), folder=tmp_path)
    anna.__enter__()
    break_lock(tmp_path, force=True)
    with hold_lock(owner_called("ben"), folder=tmp_path):
        anna.__exit__(None, None, None)
        assert user_of(tmp_path) == "ben"


def test_a_lock_of_an_earlier_boot_is_taken_over(tmp_path: Path) -> None:
    """Nobody can hold it any more; a note says whose it was."""
    with held_by(tmp_path, "anna"):
        earlier_boot(tmp_path)
        with hold_lock(owner_called("ben"), folder=tmp_path) as held:
            (note,) = held.notes
    assert note.startswith("took over the device's lock, held by anna from desk")
    assert note.endswith("that was before the device started")


def test_processes_of_one_run_share_the_lock(tmp_path: Path) -> None:
    """A run that starts another one under its own id does not wait for itself, and keeps the lock until it ends."""
    with hold_lock(owner_called("anna"), folder=tmp_path):
        process = started_holder(tmp_path, "anna")
        assert first_line(process) == "held"
        ended(process)
        with hold_lock(owner_called("anna"), folder=tmp_path) as nested:
            assert nested.is_nested
        assert lock_state(tmp_path) is not None


@pytest.mark.parametrize("is_broken", [True, False])
def test_an_inner_process_notices_that_the_lock_is_lost(tmp_path: Path, is_broken: bool) -> None:
    """Where whoever has it for the run is killed, or its lock is broken, others may measure from then on."""
    with held_by(tmp_path, "anna") as process, hold_lock(owner_called("anna"), folder=tmp_path, beat_s=0.02) as nested:
        time.sleep(0.1)
        assert not nested.is_lost
        killed(process)
        if is_broken:
            assert break_lock(tmp_path, force=True) is not None
        until = time.monotonic() + 10
        while not nested.is_lost:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_run_takes_over_from_its_own_crashed_process(tmp_path: Path) -> None:
    """An agent that is started again for the same run gets the lock that its predecessor left."""
    with held_by(tmp_path, "anna") as process:
        killed(process)
        with hold_lock(owner_called("anna"), folder=tmp_path) as held:
            assert not held.is_nested
            assert len(held.notes) == 1


def test_who_waits_is_told_once_and_gets_it(tmp_path: Path) -> None:
    """A waiting run says for whom, once, and goes on when the holder has ended; its time begins only then."""
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        let_go(process)

    process = started_holder(tmp_path, "anna")
    assert first_line(process) == "held"
    owner = owner_called("ben")
    with hold_lock(owner, name="board", folder=tmp_path, wait_s=20.0, tell=tell):
        held_s = state_of(tmp_path).held_s
        assert held_s is not None
        assert held_s < (time.monotonic_ns() - owner.began_ns) / 1e9
    ended(process)
    assert [line.partition(" since ")[0].partition(",")[0] for line in told] == [
        "board: held by anna from desk (pytest --device=board)"
    ]


def test_of_many_at_once_one_has_it(tmp_path: Path) -> None:
    """Of six processes that start together one gets the lock, and the others name it."""
    processes = [started_holder(tmp_path, f"user{number}") for number in range(6)]
    lines = [first_line(process) for process in processes]
    for process in processes:
        ended(process)
    (winner,) = (number for number, line in enumerate(lines) if line == "held")
    assert all(f"held by user{winner} " in line for line in lines if line != "held")
    assert list(tmp_path.iterdir()) == []


def test_many_who_wait_come_one_after_the_other(tmp_path: Path) -> None:
    """Each of several waiting processes gets the lock once the one before has ended."""
    processes = [started_holder(tmp_path, f"user{number}", wait_s=30.0) for number in range(3)]
    for process in processes:
        let_go(process)
    assert [process.communicate(timeout=40)[0].strip() for process in processes] == ["held"] * 3


def test_a_step_of_the_clock_makes_no_lock_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board whose clock jumps by a year still sees a living holder: heartbeats count the monotonic clock."""
    with held_by(tmp_path, "anna"):
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 365 * 86400.0)
        monkeypatch.setattr(time, "time_ns", lambda: int((now + 365 * 86400.0) * 1e9))
        state = state_of(tmp_path)
    assert state.holder is Holder.RUNS
    assert (state.held_s or 0.0) < 60.0


def test_a_lock_in_any_folder_counts(folders: tuple[Path, Path]) -> None:
    """Somebody who may not write to the first folder has the lock in the second, and is seen there."""
    first, second = folders
    with held_by(second, "anna"), pytest.raises(LockedError, match="held by anna"), hold_lock(owner_called("ben")):
        pass
    assert list(first.iterdir()) == []


def test_two_who_begin_in_different_folders_never_both_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each looks again after placing its lock, and gives way where there is another one."""
    orders = {"anna": (tmp_path / "first", tmp_path / "second"), "ben": (tmp_path / "second", tmp_path / "first")}
    for each in orders["anna"]:
        each.mkdir()
    monkeypatch.setattr("perfsuite.device.lock.holding.lock_folders", lambda: orders[threading.current_thread().name])

    def slowly_placed(folder: Path, owner: LockOwner) -> PlacedLock | None:
        time.sleep(0.001)  # so that both have seen that there is none
        return place_lock(folder, owner)

    monkeypatch.setattr("perfsuite.device.lock.holding.place_lock", slowly_placed)
    inside: list[str] = []
    most: list[int] = []

    def contend() -> None:
        user = threading.current_thread().name
        for _ in range(50):
            with suppress(LockedError), hold_lock(owner_called(user)):
                inside.append(user)
                time.sleep(0.001)
                most.append(len(inside))
                inside.remove(user)

    threads = [threading.Thread(target=contend, name=user) for user in orders]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(most) == {1}
    assert [*(tmp_path / "first").iterdir(), *(tmp_path / "second").iterdir()] == []


def test_a_folder_that_takes_nothing_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first folder is not there, the second has the lock; the refusals of all folders are named."""
    monkeypatch.setattr("perfsuite.device.lock.holding.lock_folders", lambda: (tmp_path / "none", tmp_path))
    with hold_lock(owner_called("anna")):
        assert (tmp_path / LOCK_NAME).is_dir()
    line = refusal(tmp_path / "none")
    assert re.search(r"lock cannot be written: .*none \(No such file or directory\); free space", line)


def test_a_forked_child_does_not_give_the_lock_back(tmp_path: Path) -> None:
    """A copy of the process that unwinds leaves the lock to the one that took it."""
    with hold_lock(owner_called("anna"), folder=tmp_path):
        context = hold_lock(owner_called("ben"), folder=tmp_path / "other")
        (tmp_path / "other").mkdir()
        context.__enter__()
        child = os.fork()
        if child == 0:
            context.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        assert (tmp_path / "other" / LOCK_NAME).is_dir()
        context.__exit__(None, None, None)
    assert not (tmp_path / "other" / LOCK_NAME).exists()


@pytest.mark.parametrize("is_crashed", [False, True])
def test_another_accounts_lock_is_not_this_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_crashed: bool
) -> None:
    """A lock that names this run but is of another shares nothing with it, and nothing of it is taken over."""
    with held_by(tmp_path, "anna") as process:
        if is_crashed:
            killed(process)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        told = "held by anna.* is gone" if is_crashed else "held by anna"
        with pytest.raises(LockedError, match=told), hold_lock(owner_called("anna"), folder=tmp_path):
            pass


def test_what_another_account_left_before_the_boot_is_passed_over(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot be removed, the next folder has the lock; without one the line says who may remove it."""
    first, second = folders

    def refused(folder: Path, seen: LockState) -> bool:
        raise LockedError(f"{seen.path}: belongs to the account root of the device; remove it as that account")

    with held_by(first, "anna"):
        earlier_boot(first)
        monkeypatch.setattr("perfsuite.device.lock.holding.remove_lock", refused)
        with hold_lock(owner_called("ben")):
            assert user_of(second) == "ben"
            with pytest.raises(LockedError, match="held by ben"), hold_lock(owner_called("carl")):
                pass
        with pytest.raises(LockedError, match="remove it as"), hold_lock(owner_called("ben"), folder=first):
            pass


def test_what_comes_between_placing_and_noting_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python may raise in the main thread for a signal that another thread took; the lock is known by its owner."""

    def interrupted(folder: Path, owner: LockOwner) -> PlacedLock | None:
        assert place_lock(folder, owner) is not None
        raise KeyboardInterrupt

    monkeypatch.setattr("perfsuite.device.lock.holding.place_lock", interrupted)
    with pytest.raises(KeyboardInterrupt), hold_lock(owner_called("anna"), folder=tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_inner_lock_leaves_the_outer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run's other process has placed is not that of the one that was interrupted."""

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    with hold_lock(owner_called("anna"), folder=tmp_path):
        monkeypatch.setattr("perfsuite.device.lock.holding._is_shared", interrupted)
        with pytest.raises(KeyboardInterrupt), hold_lock(owner_called("anna"), folder=tmp_path):
            pass
        assert user_of(tmp_path) == "anna"


#: Takes a lock again and again, while a timer breaks in at any moment; says how often that left something.
_INTERRUPTED = """
import os, random, shutil, signal, sys
from pathlib import Path
from perfsuite.device.lock import hold_lock
from perfsuite.device.lock.state import LockOwner

class Ended(BaseException):
    pass

def ending(*_):
    raise Ended

signal.signal(signal.SIGALRM, ending)
folder, n_left, n_ended = Path(sys.argv[1]), 0, 0
for number in range(300):
    owner = LockOwner.here(user="anna", host="desk", run_id=str(number), purpose="p")
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 1.2e-3))
        with hold_lock(owner, folder=folder):
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Ended:
        n_ended += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    for each in list(folder.iterdir()):
        n_left += 1
        shutil.rmtree(each)
print(n_ended > 0, n_left)
"""


def test_a_signal_while_the_lock_is_taken_leaves_nothing(tmp_path: Path) -> None:
    """Whenever it comes, there is neither a lock nor a draft afterwards."""
    command = [sys.executable, "-c", _INTERRUPTED, str(tmp_path)]
    uncovered = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(  # an exception in the middle of coverage's own locking would leave that locked
        command, capture_output=True, text=True, check=False, env=uncovered, timeout=60
    )
    assert (done.stdout, done.stderr) == ("True 0\n", "")
