"""What control groups let this process have of the processors: a quota of their time, and which of them.

*Source*: Linux, Documentation/admin-guide/cgroup-v2.rst (``cpu.max``, ``cpu.stat``, ``cpuset.cpus.effective``),
Documentation/scheduler/sched-bwc.rst and Documentation/admin-guide/cgroup-v1/cpusets.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from perfsuite.device.stability.small_files import entries, processor_list, read_line, read_number

#: In which groups a process is, below the machine's root.
OWN_GROUPS = "proc/self/cgroup"

#: What limits a group, in both versions of control groups: a quota and its period, and the processors.
_QUOTAS = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
_CPUSETS = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")

_MOUNT = "sys/fs/cgroup"
#: How deep groups are looked for where a process does not say which is its own.
_DEPTH = 6
_PROCESSORS = "sys/devices/system/cpu"


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's group and of those above it, in which a controller has its files."""
    rows = (line.split(":", 2) for line in (read_line(root / OWN_GROUPS) or "").splitlines())
    for _, names, path in (row for row in rows if len(row) == 3):
        group = PurePosixPath(path.strip("/"))
        if {"", controller} & {*names.split(",")} and ".." not in group.parts:
            top = root / _MOUNT / (controller if names else "")
            yield from (top / each for each in (group, *group.parents))


def limit_patterns(root: Path) -> tuple[str, ...]:
    """Return patterns, below the root, of the files that may limit this process: in any group where it names none."""
    files = {"cpu": _QUOTAS, "cpuset": _CPUSETS}
    named = {each: [_pattern(folder.relative_to(root)) for folder in _folders(root, each)] for each in files}
    if not any(named.values()):
        tops = {each: (_MOUNT, f"{_MOUNT}/{each}") for each in files}
        named = {each: [top + "/*" * depth for top in tops[each] for depth in range(_DEPTH)] for each in files}
    return tuple(f"{folder}/{name}" for each, names in files.items() for folder in named[each] for name in names)


def _pattern(path: Path) -> str:
    return re.sub(r"[\\*?\[]", r"\\\g<0>", str(path))


def throttled_ns(root: Path = Path("/")) -> int | None:
    """Sum how long quotas held this process's control group and those above it back; None where no file says it."""
    found = []
    for folder in _folders(root, "cpu"):
        with suppress(ValueError):
            words = dict(line.split() for line in (read_line(folder / "cpu.stat") or "").splitlines())
            if {"throttled_time", "throttled_usec"} & words.keys():
                found.append(int(words.get("throttled_time", 0)) + 1000 * int(words.get("throttled_usec", 0)))
    return sum(found) if found else None


def limits(root: Path = Path("/")) -> dict[str, str]:
    """Return by field what control groups withhold of the processors that are on; nothing where that is nothing.

    Of processors that differ in their clock it is said which may be used, of others how many.
    """
    online = processor_list(read_line(root / _PROCESSORS / "online") or "")
    quotas = [quota for folder in _folders(root, "cpu") if (quota := _quota(folder)) is not None]
    sets = (read_line(folder / name) for folder in _folders(root, "cpuset") for name in _CPUSETS)
    text = next(filter(None, sets), "")
    usable = [each for each in processor_list(text) if each in online]
    clocks = {read_number(each) for each in entries(root / _PROCESSORS / "cpufreq", "policy*/cpuinfo_max_freq")}
    found, n_usable = {}, len(usable or online)
    if quotas and min(quotas) < n_usable:
        found["cpu_quota"] = f"{min(quotas):g} of {n_usable}"
    if 0 < len(usable) < len(online):
        found["cpuset"] = f"{text} of {len(online)}" if len(clocks) > 1 else f"{len(usable)} of {len(online)}"
    return found


def _quota(folder: Path) -> float | None:
    """Return how many processors' time a group may have; None where that is not limited."""
    words = " ".join(text for name in _QUOTAS if (text := read_line(folder / name))).split()
    quota, period = map(int, words) if len(words) == 2 and all(map(str.isdecimal, words)) else (0, 0)
    return quota / period if period else None
