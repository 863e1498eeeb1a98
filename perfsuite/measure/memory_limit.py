"""Limits the memory of a process by a control group of its own, so that mapped weights are paged in and out.

Version 2 has ``memory.max`` and ``memory.swap.max``; version 1 ``memory.limit_in_bytes`` and
``memory.memsw.limit_in_bytes``. Pages count for the group that first touched them: files that
are in the page cache already are nobody's of ours, so a file is taken out of it first.

*Source*: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst; proc(5) for ``/proc/PID/cgroup``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import MeasurementError

#: Less is not enough for an interpreter.
LEAST_LIMIT_BYTES = 32 << 20

_CGROUPS = Path("/sys/fs/cgroup")
_MOUNTS = Path("proc/mounts")
_STAT = "memory.stat"

#: What is read to find a process's group on another machine, below its root.
GROUP_FILES = (
    "proc/self/cgroup",
    "proc/mounts",
    "sys/fs/cgroup/cgroup.controllers",
    "sys/fs/cgroup/*/cgroup.controllers",
)


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
    def counted_names(self) -> tuple[str, ...]:
        """The files that count."""
        return _STAT, self._events_name

    def limits(self, limit_bytes: int) -> tuple[tuple[str, str, bool], ...]:
        """Return what is written to which files, and whether it must be taken.

        Without swap accounting anonymous pages may go to swap, and there is no file for that.
        """
        swap = ("memory.swap.max", "0") if self.is_v2 else ("memory.memsw.limit_in_bytes", str(limit_bytes))
        return (self.limit_name, str(limit_bytes), True), (*swap, False)

    @property
    def _events_name(self) -> str:
        return "memory.events" if self.is_v2 else "memory.oom_control"

    @property
    def n_refaults(self) -> int | None:
        """Pages of files that were given up, and needed again soon; None where the kernel does not count them."""
        return self._counts(_STAT).get("workingset_refault_file")

    @property
    def n_killed(self) -> int:
        """Processes that the kernel killed because what they need, and cannot give up, is more than the limit."""
        return self._counts(self._events_name).get("oom_kill", 0)

    def _counts(self, name: str) -> dict[str, int]:
        lines = (line.split() for line in (self.path / name).read_text().splitlines())
        return {words[0]: int(words[1]) for words in lines}


def check_limit(limit_bytes: int) -> None:
    """Refuse a limit that is too low for anything."""
    if limit_bytes < LEAST_LIMIT_BYTES:
        raise MeasurementError(f"memory limit: {limit_bytes} bytes, expected {LEAST_LIMIT_BYTES} and more")


def stopped_by_limit(limit_bytes: int) -> MeasurementError:
    """Return the error for a run that the kernel has killed for its memory."""
    return MeasurementError(
        f"memory limit of {limit_bytes} bytes: the kernel stopped the run, which needs more; weights that the "
        "engine copies count in full (q4_0 on x86), those that it maps do not (q8_0)"
    )


def possible_parents(process: str, root: Path = Path("/")) -> tuple[tuple[Path, Path], bool]:
    """Return where the group of a process may be, and whether it is version 2's, by the files below a root.

    The second place is the mount itself, for a group that lies outside of what a container shows.
    """
    try:
        lines = (root / "proc" / process / "cgroup").read_text().splitlines()
        mounts = [line.split()[1:4] for line in (root / _MOUNTS).read_text().splitlines()]
    except OSError:
        raise MeasurementError(f"memory limit: process {process} is gone, or /proc is not there") from None
    own = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    for where, kind, words in mounts:
        if kind == "cgroup" and "memory" in words.split(","):
            path = next((path for names, path in own.items() if "memory" in names.split(",")), "/")
            return (Path(where) / path.lstrip("/"), Path(where)), False
    for where, kind, _ in mounts:
        controllers = root / where.lstrip("/") / "cgroup.controllers"
        if kind == "cgroup2" and controllers.exists() and "memory" in controllers.read_text().split():
            return (Path(where) / own.get("", "/").lstrip("/"), Path(where)), True
    raise MeasurementError(f"memory limit: {_CGROUPS} has no memory controller")
