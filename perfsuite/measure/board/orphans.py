"""Ends workers that a killed run has left behind: they would measure, and disturb, until they are done."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.device.process_start import pid_namespace, process_start
from perfsuite.measure.environment import LOCK_FOLDER_NAME, environment_lock_folder
from perfsuite.measure.launch import PARENT_NAME
from perfsuite.records.bundle import WORKER

if TYPE_CHECKING:
    import psutil


#: Longest to wait for killed workers, and how often is looked for what they have started, which may start more.
_REAP_LIMIT_S = 5.0
_LOOK_S = 0.02

#: The parent of whatever has lost its own.
_INIT = 1


def end_orphans(pids: Sequence[int] | None = None) -> tuple[str, ...]:
    """Kill this account's workers whose parent is gone, with all that they have started; say so.

    Another account's are reported, and left: it may have a reason. Call it while the device's lock is held.

    Looks at the processes `pids`, or at all.
    """
    import psutil  # takes as long to import as all the rest

    notes: list[str] = []
    for process in _workers(pids):
        with suppress(psutil.Error, OSError):
            if process.uids().real != os.getuid():
                notes += _foreign_notes(process)
            elif _is_orphan(process):
                _kill_session(process)
                notes.append(f"ended the worker {process.pid}, which a run that was killed had left behind")
    return tuple(notes)


def _workers(pids: Sequence[int] | None) -> Iterator[psutil.Process]:
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if (pids is None or process.pid in pids) and is_worker_command(process.cmdline()):
                yield process


def is_worker_command(words: Sequence[str]) -> bool:
    """Whether a command runs a plan: Python by its module, the program by its name and arguments."""
    named = (Path(word).name == WORKER for word in words[:2])
    return "perfsuite.measure.worker" in words or any(
        is_named and words[place + 1 : place + 2] == ["run"] for place, is_named in enumerate(named)
    )


def _is_orphan(process: psutil.Process) -> bool:
    """Whether whoever started a worker is gone; of another namespace's that cannot be known, so it is not stated.

    The run that started it had the device by this run's lock: one by another lock is for the next that takes that.
    """
    environment = process.environ()
    if environment.get(LOCK_FOLDER_NAME) != environment_lock_folder():
        return False
    pid, _, known = environment.get(PARENT_NAME, "").partition(" ")
    ticks, _, namespace = known.partition(" ")
    if not (pid.isdecimal() and ticks.isdecimal() and namespace and namespace == pid_namespace()):
        return False
    started = process_start(int(pid))
    return started is None or started.is_ended or started.ticks != int(ticks)


def _foreign_notes(process: psutil.Process) -> Iterator[str]:
    """Tell another account's orphan; where its environment is closed to us, by the parent that it has now."""
    import psutil

    try:
        is_orphan = _is_orphan(process)
    except psutil.AccessDenied:
        is_orphan = process.ppid() == _INIT
    if is_orphan:
        told = f"the worker {process.pid} of the account {process.username()} was left behind by a run that was killed"
        yield f"{told}, and disturbs what is measured; end it as that account, or as root"


def _kill_session(orphan: psutil.Process) -> None:
    """Kill a worker with what it has started: it leads a session, in which its children's children are, too."""
    import psutil

    is_leader = os.getsid(orphan.pid) == orphan.pid
    until = time.monotonic() + _REAP_LIMIT_S
    while time.monotonic() < until:
        found = [each for each in psutil.process_iter() if each == orphan or (is_leader and _is_in(each, orphan))]
        alive = [each for each in found if _is_alive(each)]
        if not alive:
            return
        for each in alive:
            with suppress(psutil.Error, OSError):
                each.kill()
        time.sleep(_LOOK_S)


def _is_in(process: psutil.Process, session: psutil.Process) -> bool:
    with suppress(OSError):
        return os.getsid(process.pid) == session.pid
    return False


def _is_alive(process: psutil.Process) -> bool:
    """Whether a process is there, and is more than a line in its parent's table, which that may never clear."""
    started = process_start(process.pid)
    return started is not None and not started.is_ended
