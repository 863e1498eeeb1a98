"""How long the threads of this process waited for a processor, and what else the machine did meanwhile.

*Source*: Linux, Documentation/scheduler/sched-stats.rst (``/proc/PID/task/TID/schedstat``: time on the processor, time
waiting on a run queue, both ns) and proc(5) for ``steal`` in ``/proc/stat``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Competition for the processors during one measured stretch."""

    wall_ns: int
    #: Time on a processor and time spent runnable but waiting, over all threads; None where the kernel does not say.
    running_ns: int | None
    waiting_ns: int | None
    #: Share of the machine's processor time that the hypervisor took; None where it is not known.
    steal_ratio: float | None

    @property
    def waiting_ratio(self) -> float | None:
        """Waiting over running and waiting: 0 where nobody competes, 0.5 where each core is shared with one other."""
        if self.waiting_ns is None or self.running_ns is None:
            return None
        total = self.running_ns + self.waiting_ns
        return self.waiting_ns / total if total else 0.0

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {
            "wall_ns": self.wall_ns,
            "running_ns": self.running_ns,
            "waiting_ns": self.waiting_ns,
            "steal_ratio": self.steal_ratio,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Contention:
        """Rebuild from `to_plain`."""
        return cls(**plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentionMark:
    """Counters at one instant; two of them make a `Contention`."""

    now_ns: int
    running_ns: int | None
    waiting_ns: int | None
    steal_ticks: int | None
    total_ticks: int | None

    @classmethod
    def take(cls, proc: Path = Path("/proc")) -> ContentionMark:
        """Read the counters of this process's threads and of the machine."""
        running, waiting = _thread_times(proc / "self" / "task")
        steal, total = _processor_ticks(proc / "stat")
        return cls(
            now_ns=time.monotonic_ns(), running_ns=running, waiting_ns=waiting, steal_ticks=steal, total_ticks=total
        )

    def until(self, later: ContentionMark) -> Contention:
        """Take the difference between this mark and a later one."""
        total = _difference(self.total_ticks, later.total_ticks)
        steal = _difference(self.steal_ticks, later.steal_ticks)
        return Contention(
            wall_ns=later.now_ns - self.now_ns,
            running_ns=_difference(self.running_ns, later.running_ns),
            waiting_ns=_difference(self.waiting_ns, later.waiting_ns),
            steal_ratio=steal / total if steal is not None and total else None,
        )


def _difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else max(0, last - first)


def _thread_times(tasks: Path) -> tuple[int | None, int | None]:
    try:
        rows = [(task / "schedstat").read_text().split() for task in tasks.iterdir()]
        return sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    except (OSError, ValueError, IndexError):
        return None, None


def _processor_ticks(stat: Path) -> tuple[int | None, int | None]:
    try:
        fields = [int(field) for field in stat.read_text().splitlines()[0].split()[1:9]]
        return fields[7], sum(fields)
    except (OSError, ValueError, IndexError):
        return None, None
