"""Waits until a process has llama.cpp in it: before that there is nothing to attach to."""

from __future__ import annotations

import os
import time
from pathlib import Path

from perfsuite.errors import MeasurementError

#: What must be mapped, by the beginnings of the files' names; a program may load them long after its start.
NEEDED_LIBRARIES = ("libllama.so", "libggml-base.so", "libggml-cpu")

_POLL_S = 0.005


def mapped_files(pid: int) -> tuple[Path, ...]:
    """Return the files that a process maps, each once, in the order of addresses.

    Raises `MeasurementError` where there is no such process, or this user may not look into it.
    """
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines()
    except PermissionError:
        raise MeasurementError(f"process {pid}: belongs to another user; trace it as that user") from None
    except OSError:
        raise MeasurementError(f"process {pid}: is not there, or has ended") from None
    fields = (line.split(maxsplit=5) for line in lines)
    return tuple(dict.fromkeys(Path(each[5]) for each in fields if len(each) > 5 and each[5].startswith("/")))


def refuse_other_user(pid: int) -> None:
    """Raise unless a process is this user's own, whatever else this user may do.

    Raises `MeasurementError` where there is no such process, or one of its user ids is another's.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        raise MeasurementError(f"process {pid}: is not there, or has ended") from None
    ids = next((line.split()[1:] for line in lines if line.startswith("Uid:")), [])
    if set(ids) != {str(os.getuid())}:
        raise MeasurementError(f"process {pid}: belongs to another user; trace it as that user")


def missing_library(pid: int) -> str | None:
    """Return the first of `NEEDED_LIBRARIES` that a process has not mapped; None where all are there."""
    names = [path.name for path in mapped_files(pid)]
    return next((library for library in NEEDED_LIBRARIES if not any(name.startswith(library) for name in names)), None)


def await_engine(pid: int, *, limit_s: float | None = None) -> bool:
    """Wait until a process has mapped llama.cpp; return whether it has, and not ended before.

    It waits for `limit_s` at the longest, or for as long as the process lives.

    Raises `MeasurementError` where the limit is over, or this user may not look into the process.
    """
    began_s = time.monotonic()
    while is_alive(pid):
        try:
            missing = missing_library(pid)
        except MeasurementError:
            if is_alive(pid):
                raise
            return False
        if missing is None:
            return True
        if limit_s is not None and time.monotonic() - began_s > limit_s:
            raise MeasurementError(
                f"process {pid}: no {missing} after {limit_s:g} s; is it a llama.cpp program, with shared libraries?"
            )
        time.sleep(_POLL_S)
    return False


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and is not yet waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in {"Z", "X"}
