"""How long the threads of this process waited for a processor, and what else the machine did meanwhile.

*Source*: Linux, Documentation/scheduler/sched-stats.rst (``/proc/PID/task/TID/schedstat``: time on the processor, time
waiting on a run queue, both ns), proc(5) for ``steal`` in ``/proc/stat``, and Documentation/scheduler/sched-bwc.rst for
``throttled_time`` (ns) and ``throttled_usec`` in ``cpu.stat``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perfsuite.device.control_groups import throttled_ns

#: The processors that this process may use, asked for before anything binds its threads to some of them.
USABLE_PROCESSORS = frozenset(os.sched_getaffinity(0))

#: The part of the waiting that others must have taken for it to be competition; and what is lost at most, of the time.
LEAST_OTHERS_PART, MOST_LOST_RATIO = 0.25, 0.8

#: Sides of a pair whose lost shares differ by more than this were not disturbed alike: the pair is left out.
ONE_SIDED_RATIO = 0.10

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Competition for the processors during one measured stretch."""

    wall_ns: int
    #: Time on a processor and time spent runnable but waiting, over all threads; None where the kernel does not say.
    running_ns: int | None
    waiting_ns: int | None
    #: Share of the machine's processor time that the hypervisor took; None where it is not known.
    steal_ratio: float | None
    #: Share of the processors that this process may use that went to others; None where the kernel does not say.
    others_ratio: float | None
    #: How long a quota of the control group held this process back; None where there is none that can be read.
    throttled_ns: int | None = None

    @property
    def lost_ratio(self) -> float:
        """Share of the time, at most, that others took: 0 where threads wait for each other alone, or nothing is known.

        One thread that waits may stop all, so what all threads waited counts in full. Where other processes, the
        hypervisor and a quota are known to make up little of the waiting, the threads are more than the processors.
        """
        steal, waiting, throttled = self.steal_ratio or 0.0, self.waiting_ns or 0, self.throttled_ns or 0
        taken = None if self.others_ratio is None else self.others_ratio + steal
        is_own = taken is not None and taken <= (self.waiting_ratio or 0.0) * LEAST_OTHERS_PART
        if self.wall_ns <= 0 or (is_own and throttled <= waiting * LEAST_OTHERS_PART):
            return min(MOST_LOST_RATIO, steal)
        return min(MOST_LOST_RATIO, max(waiting, throttled) / self.wall_ns + steal)

    @property
    def waiting_ratio(self) -> float | None:
        """Waiting over running and waiting: 0 where nobody competes, 0.5 where each core is shared with one other."""
        if self.waiting_ns is None or self.running_ns is None:
            return None
        total = self.running_ns + self.waiting_ns
        return self.waiting_ns / total if total else 0.0

    @classmethod
    def total(cls, stretches: Sequence[Contention]) -> Contention:
        """Take several stretches as one; what is not known of one of them is not known of all."""
        return cls(
            wall_ns=sum(each.wall_ns for each in stretches),
            running_ns=_sum([each.running_ns for each in stretches]),
            waiting_ns=_sum([each.waiting_ns for each in stretches]),
            steal_ratio=_mean([(each.steal_ratio, each.wall_ns) for each in stretches]),
            others_ratio=_mean([(each.others_ratio, each.wall_ns) for each in stretches]),
            throttled_ns=_sum([each.throttled_ns for each in stretches]),
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Contention:
        """Rebuild from `to_plain`."""
        return cls(**plain)


def is_one_sided(old_ratio: float, new_ratio: float) -> bool:
    """Whether one side of a pair was disturbed so much more that the pair says nothing; both count alike."""
    return abs(old_ratio - new_ratio) > ONE_SIDED_RATIO


@contextmanager
def contended() -> Iterator[dict[str, Any]]:
    """Yield what becomes, at the end of the context, a payload's entry with its contention."""
    found: dict[str, Any] = {}
    before = ContentionMark.take()
    yield found
    found["contention"] = before.until(ContentionMark.take()).to_plain()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentionMark:
    """Counters at one instant; two of them make a `Contention`."""

    now_ns: int
    #: Processor time of this process, ended threads included.
    own_ns: int
    running_ns: int | None
    waiting_ns: int | None
    #: Clock ticks of the processors since boot: on work, taken by the hypervisor, and in all.
    ticks: tuple[int, int, int] | None
    throttled_ns: int | None = None

    @classmethod
    def take(cls, proc: Path = Path("/proc")) -> ContentionMark:
        """Read the counters of this process's threads and of the processors that it may use."""
        running, waiting = _thread_times(proc / "self" / "task")
        return cls(
            now_ns=time.monotonic_ns(),
            own_ns=time.process_time_ns(),
            running_ns=running,
            waiting_ns=waiting,
            ticks=processor_ticks(proc / "stat", USABLE_PROCESSORS),
            throttled_ns=throttled_ns(proc.parent),
        )

    def until(self, later: ContentionMark) -> Contention:
        """Take the difference between this mark and a later one."""
        steal_ratio = others_ratio = None
        if self.ticks is not None and later.ticks is not None:
            busy, steal, total = (last - first for first, last in zip(self.ticks, later.ticks, strict=True))
            if total > 0:
                steal_ratio = steal / total
                others_ratio = max(0.0, busy - (later.own_ns - self.own_ns) / _TICK_NS) / total
        return Contention(
            wall_ns=later.now_ns - self.now_ns,
            running_ns=_difference(self.running_ns, later.running_ns),
            waiting_ns=_difference(self.waiting_ns, later.waiting_ns),
            steal_ratio=steal_ratio,
            others_ratio=others_ratio,
            throttled_ns=_difference(self.throttled_ns, later.throttled_ns),
        )


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _mean(weighted: Sequence[tuple[float | None, int]]) -> float | None:
    known = [(value, weight) for value, weight in weighted if value is not None]
    total = sum(weight for _, weight in known)
    if len(known) != len(weighted) or not total:
        return None
    return sum(value * weight for value, weight in known) / total


def _difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else max(0, last - first)


def _thread_times(tasks: Path) -> tuple[int | None, int | None]:
    try:
        rows = [(task / "schedstat").read_text().split() for task in tasks.iterdir()]
        return sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    except (OSError, ValueError, IndexError):
        return None, None


def processor_ticks(stat: Path, usable: Set[int]) -> tuple[int, int, int] | None:
    """Sum the lines ``cpuN user nice system idle iowait irq softirq steal ...`` of the usable processors."""
    try:
        rows = [line.split() for line in stat.read_text().splitlines() if line.startswith("cpu")]
        ticks = [
            [int(field) for field in row[1:9]] for row in rows if row[0][3:].isdigit() and int(row[0][3:]) in usable
        ]
        columns = [sum(column) for column in zip(*ticks, strict=True)]
        user, nice, system, idle, iowait, irq, softirq, steal = columns
    except (OSError, ValueError, IndexError):
        return None
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + idle + iowait + steal
