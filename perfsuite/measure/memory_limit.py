"""Limits the memory of a process by a control group of its own, so that mapped weights are paged in and out.

Version 2 has ``memory.max`` and ``memory.swap.max``; version 1 ``memory.limit_in_bytes`` and
``memory.memsw.limit_in_bytes``. Pages count for the group that first touched them: files that
lie in the page cache already are nobody's of ours, so `drop_file_pages` takes a file out of it first.

*Source*: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst; proc(5) for ``/proc/PID/cgroup``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import MeasurementError

#: Less is not enough for an interpreter.
LEAST_LIMIT_BYTES = 32 << 20

_CGROUPS = Path("/sys/fs/cgroup")
_MOUNTS = Path("/proc/mounts")
_REMOVAL_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGroup:
    """A control group and what its files are called."""

    path: Path
    is_v2: bool

    @property
    def limit_name(self) -> str:
        """The file that has the limit."""
        return "memory.max" if self.is_v2 else "memory.limit_in_bytes"

    @property
    def n_refaults(self) -> int | None:
        """Pages of files that were given up, and needed again soon; None where the kernel does not count them."""
        return self._counts("memory.stat").get("workingset_refault_file")

    @property
    def n_killed(self) -> int:
        """Processes that the kernel killed because what they need, and cannot give up, is more than the limit."""
        return self._counts("memory.events" if self.is_v2 else "memory.oom_control").get("oom_kill", 0)

    def _counts(self, name: str) -> dict[str, int]:
        lines = (line.split() for line in (self.path / name).read_text().splitlines())
        return {words[0]: int(words[1]) for words in lines}


def memory_limit_obstacle() -> str | None:
    """Say what the machine lacks for limiting the memory of a process, in one line; None where nothing."""
    try:
        with _group(os.getpid()):
            return None
    except MeasurementError as error:
        return str(error)


@contextmanager
def limited_memory(pid: int, limit_bytes: int) -> Iterator[MemoryGroup]:
    """Limit the memory of a process and of what it starts from now on, page cache and all.

    What it holds already stays with its old group, so this is for a process that has not read its weights yet. At the
    end the process goes back, where it still lives, and the group is removed.

    Raises `MeasurementError` where control groups are missing or may not be made, the process is gone, or the limit is
    below `LEAST_LIMIT_BYTES`.
    """
    if limit_bytes < LEAST_LIMIT_BYTES:
        raise MeasurementError(f"memory limit: {limit_bytes} bytes, expected {LEAST_LIMIT_BYTES} and more")
    with _group(pid) as group:
        _write(group.path / group.limit_name, str(limit_bytes))
        with suppress(MeasurementError):  # without swap accounting anonymous pages may go to swap
            if group.is_v2:
                _write(group.path / "memory.swap.max", "0")
            else:
                _write(group.path / "memory.memsw.limit_in_bytes", str(limit_bytes))
        _write(group.path / "cgroup.procs", str(pid))
        yield group


def drop_file_pages(path: Path) -> None:
    """Take a file out of the page cache, so that it is read, and counted, anew.

    Raises `MeasurementError` where the file cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        os.fsync(handle)  # a page that is not written yet is kept
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


@contextmanager
def _group(pid: int) -> Iterator[MemoryGroup]:
    """Make a group for a process below its own, and remove it once the process is back in that."""
    parent, is_v2 = _parent(pid)
    group = MemoryGroup(path=parent / f"perfsuite-{os.getpid()}-{pid}-{time.monotonic_ns()}", is_v2=is_v2)
    try:
        group.path.mkdir()
    except OSError as error:
        raise MeasurementError(f"memory limit: {parent}: no control group can be made ({error.strerror})") from None
    try:
        if not (group.path / group.limit_name).exists():
            raise MeasurementError(f"memory limit: {parent}: memory is not delegated to groups below it")
        yield group
    finally:
        _remove(group, parent)


def _parent(pid: int) -> tuple[Path, bool]:
    """Return the group of a process in the hierarchy that has the memory controller."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        mounts = [line.split()[1:4] for line in _MOUNTS.read_text().splitlines()]
    except OSError:
        raise MeasurementError(f"memory limit: process {pid} is gone, or /proc is not there") from None
    own = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    for where, kind, words in mounts:
        if kind == "cgroup" and "memory" in words.split(","):
            path = next((path for names, path in own.items() if "memory" in names.split(",")), "/")
            return _visible(Path(where), path), False
    for where, kind, _ in mounts:
        controllers = Path(where) / "cgroup.controllers"
        if kind == "cgroup2" and controllers.exists() and "memory" in controllers.read_text().split():
            return _visible(Path(where), own.get("", "/")), True
    raise MeasurementError(f"memory limit: {_CGROUPS} has no memory controller")


def _visible(mount: Path, path: str) -> Path:
    """Return a group's folder; the mount itself where the group lies outside of what a container shows."""
    found = mount / path.lstrip("/")
    return found if found.is_dir() else mount


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise MeasurementError(f"memory limit: {path}: cannot be written ({error.strerror})") from None


def _remove(group: MemoryGroup, parent: Path) -> None:
    """Send what is left back to its old group; a group is removed once the kernel has let go of its processes."""
    end = time.monotonic() + _REMOVAL_LIMIT_S
    while True:
        with suppress(OSError, MeasurementError):
            for pid in (group.path / "cgroup.procs").read_text().split():
                _write(parent / "cgroup.procs", pid)
        with suppress(OSError):
            group.path.rmdir()
            return
        if time.monotonic() > end or not group.path.exists():
            return
        time.sleep(0.02)
