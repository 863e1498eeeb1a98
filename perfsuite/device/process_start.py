"""What names a process for good: its number, when it started, in which namespace, since which start of the machine.

And how long this one lives: no longer than whoever started it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = "proc/sys/kernel/random/boot_id"

#: *Source*: linux/prctl.h.
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStart:
    """What ``/proc`` says of a process."""

    #: In clock ticks since the boot: with the number, it names a process for good.
    ticks: int
    #: Whether it has ended, and only its parent has not asked how.
    is_ended: bool


def process_start(pid: int, root: Path = Path("/")) -> ProcessStart | None:
    """Read when a process started; None where ``/proc`` does not show it.

    *Source*: proc_pid_stat(5): state is field 3, starttime field 22; field 2, in parentheses, may hold anything.
    """
    try:
        after_name = (root / f"proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return ProcessStart(ticks=int(after_name[19]), is_ended=after_name[0] in {b"Z", b"X"})
    except (OSError, ValueError, IndexError):
        return None


def is_there(pid: int, ticks: int | None) -> bool | None:
    """Whether a process that started at these ticks is there; None where one of its number is, which ``/proc`` hides.

    Without ticks any process of its number will do.
    """
    started = process_start(pid)
    if started is not None:
        return not started.is_ended and ticks in (None, started.ticks)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return None


def boot_id(root: Path = Path("/")) -> str:
    """Return what names this boot; "" where the system does not say."""
    try:
        return (root / _BOOT_ID).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def pid_namespace() -> str:
    """Return what names the namespace of this process's number; "" where the system does not say."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def end_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Let the kernel signal this process as soon as the thread that started it, of the process `parent`, ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it died before its death was asked for
        sys.exit("the process that started this one is gone")
