"""What has used the processors of a device within a second, by two looks at ``/proc``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfsuite.device.probe.processors import processor_list
from perfsuite.device.probe.readings import Readings

#: Programs that are named: those that used at least this share of one processor, the first of them.
_LEAST_SHARE_RATIO, _MOST_NAMED = 0.05, 3

#: The doctor's own survey, and the link to it.
_OWN_NAMES = {"sh", "cat", "sleep", "sed", "grep", "sshd", "sshd-session", "adbd", "ps", "toybox"}

_PROCESS = re.compile(r"(\d+) \((.*)\) (.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A program that used a processor."""

    pid: int
    name: str
    #: Of the time of one processor.
    share_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What the processors did between two looks."""

    #: Of the time of all processors: used by anything, and taken by the hypervisor.
    busy_ratio: float
    steal_ratio: float
    #: The busiest first.
    processes: tuple[Process, ...]


def activity(readings: Readings) -> Activity | None:
    """Return what the processors did; None where the readings hold no two looks.

    *Source*: proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
    """
    looks = [_ticks(readings.text(f"cpu_ticks{number}")) for number in (1, 2)]
    if looks[0] is None or looks[1] is None:
        return None
    spent = [after - before for before, after in zip(*looks, strict=False)]
    total = sum(spent)
    if len(spent) < 8 or total <= 0:
        return None
    idle, steal = spent[3] + spent[4], spent[7]
    n_processors = max(1, len(processor_list(readings.text("/sys/devices/system/cpu/online") or "0")))
    return Activity(
        busy_ratio=max(0.0, (total - idle - steal) / total),
        steal_ratio=max(0.0, steal / total),
        processes=_processes(readings, ticks_per_processor=total / n_processors),
    )


def _ticks(line: str | None) -> list[int] | None:
    fields = (line or "").split()[1:9]
    return [int(each) for each in fields] if fields and all(each.isdigit() for each in fields) else None


def _processes(readings: Readings, *, ticks_per_processor: float) -> tuple[Process, ...]:
    before, after = (_by_process(readings.all(f"process_ticks{number}")) for number in (1, 2))
    found = []
    for key, ticks in after.items():
        pid, name = key
        share = (ticks - before.get(key, ticks)) / ticks_per_processor
        if share >= _LEAST_SHARE_RATIO and name not in _OWN_NAMES:
            found.append(Process(pid=pid, name=name, share_ratio=share))
    return tuple(sorted(found, key=lambda each: -each.share_ratio)[:_MOST_NAMED])


def _by_process(lines: tuple[str, ...]) -> dict[tuple[int, str], int]:
    """Return user and system ticks by process; fields 14 and 15 of proc_pid_stat(5)."""
    ticks = {}
    for line in lines:
        found = _PROCESS.fullmatch(line.strip())
        fields = found[3].split() if found else []
        if found and len(fields) > 12 and fields[11].isdigit() and fields[12].isdigit():
            ticks[int(found[1]), found[2]] = int(fields[11]) + int(fields[12])
    return ticks
