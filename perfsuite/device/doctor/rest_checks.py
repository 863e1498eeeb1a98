"""Whether the device is at rest: heat, battery, memory, what else runs on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfsuite.device.doctor.gathering import Facts, Finding, fail, ok, warn
from perfsuite.device.probe.processors import meminfo_bytes
from perfsuite.device.probe.readings import Readings
from perfsuite.device.probe.sensors import battery, zones
from perfsuite.device.stability.small_files import processor_list
from perfsuite.device.stability.throttling import parse_throttled

#: Programs that are named: those that used at least this share of one processor, the first of them.
_LEAST_SHARE_RATIO, _MOST_NAMED = 0.05, 3

#: The doctor's own survey, and the link to it.
_OWN_NAMES = {"sh", "cat", "sleep", "sed", "grep", "sshd", "sshd-session", "adbd", "ps", "toybox"}

_PROCESS = re.compile(r"(\d+) \((.*)\) (.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Activity:
    """What the processors did between two looks."""

    #: Of the time of all processors: used by anything, and taken by the hypervisor.
    busy_ratio: float
    steal_ratio: float
    #: The programs that used a processor, the busiest first: share of the time of one processor, number and name.
    processes: tuple[tuple[float, int, str], ...]


def _activity(readings: Readings) -> _Activity | None:
    """Return what the processors did; None where the readings hold no two looks.

    *Source*: proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
    """
    looks = [(readings.text(f"cpu_ticks{number}") or "").split()[1:9] for number in (1, 2)]
    if not all(each.isdigit() for look in looks for each in look):
        return None
    spent = [int(after) - int(before) for before, after in zip(*looks, strict=False)]
    total = sum(spent)
    if len(spent) < 8 or total <= 0:
        return None
    idle, steal = spent[3] + spent[4], spent[7]
    n_processors = max(1, len(processor_list(readings.text("/sys/devices/system/cpu/online") or "0")))
    before, after = (_by_process(readings.all(f"process_ticks{number}")) for number in (1, 2))
    shares = (
        ((ticks - before.get(key, ticks)) * n_processors / total, *key)
        for key, ticks in after.items()
        if key[1] not in _OWN_NAMES
    )
    busy = sorted((each for each in shares if each[0] >= _LEAST_SHARE_RATIO), key=lambda each: -each[0])
    return _Activity(
        busy_ratio=max(0.0, (total - idle - steal) / total),
        steal_ratio=max(0.0, steal / total),
        processes=tuple(busy[:_MOST_NAMED]),
    )


def _by_process(lines: tuple[str, ...]) -> dict[tuple[int, str], int]:
    """Return user and system ticks by process; fields 14 and 15 of proc_pid_stat(5)."""
    ticks = {}
    for line in lines:
        found = _PROCESS.fullmatch(line.strip())
        fields = found[3].split() if found else []
        if found and len(fields) > 12 and fields[11].isdigit() and fields[12].isdigit():
            ticks[int(found[1]), found[2]] = int(fields[11]) + int(fields[12])
    return ticks


#: Share of all processors, and of the hypervisor, from which on results suffer.
_MOST_BUSY_RATIO, _MOST_STEAL_RATIO = 0.05, 0.01

#: Besides the weights: the cache, the graph's buffers, the program.
_MEMORY_RATIO, _LEAST_MEMORY_BYTES = 1.3, 300_000_000


def heat(facts: Facts) -> Finding | None:
    """Whether it is cool enough to begin, as the profile counts zones."""
    counted = facts.profile.conditions.thermal_zones
    gate = facts.profile.conditions.start_below_celsius
    found = [each for each in zones(facts.readings) if not counted or each.type in counted]
    known = [(each.celsius, each.type) for each in found if each.celsius is not None]
    if not known:
        if gate is None:
            return None
        zones_text = f"none of {', '.join(counted)}" if counted else "no temperature"
        mend = "correct 'thermal_zones', or take 'start_below_celsius' out of the profile"
        return warn(f"{zones_text} can be read, and a run is to begin below {gate:g}", mend)
    hottest, kind = max(known)
    seen = f"{hottest:.0f} degrees ({kind})" + (f", a run begins below {gate:g}" if gate is not None else "")
    return warn(seen, "let it cool, or give it a fan") if gate is not None and hottest > gate else ok(seen)


def throttling(facts: Facts) -> Finding:
    """Whether something slows the device down now, as cooling devices and a board's firmware say."""
    told = facts.readings.text("throttled")
    reasons = list((parse_throttled(told) if told else None) or ())
    for match in facts.readings.names(r"(/sys/class/thermal/cooling_device\d+)/type"):
        kind, state = facts.readings.text(match[0]) or "", facts.readings.count(f"{match[1]}/cur_state")
        if "cpufreq" in kind and state:
            reasons.append(f"{kind} at step {state} of {facts.readings.text(f'{match[1]}/max_state')}")
    android = (facts.readings.text("thermal_status") or "").partition(": ")[2]
    if android not in ("", "0"):
        reasons.append(f"Android's thermal status is {android}")
    if reasons:
        return warn("; ".join(reasons), "let it cool; where it says voltage: a stronger power supply")
    return ok("none")


def charge(facts: Facts) -> Finding | None:
    """Whether the battery is fed or charged enough."""
    found = battery(facts.readings)
    if found is None:
        return None
    least = facts.profile.conditions.least_battery_ratio
    held = "unknown charge" if found.charge_ratio is None else f"{found.charge_ratio:.0%}"
    seen = f"{held}, {'fed' if found.is_fed else 'drained' if found.is_fed is False else 'fed or drained'}"
    if least is not None and not found.is_fed and found.charge_ratio is not None and found.charge_ratio < least:
        return fail(f"{seen}; a run needs {least:.0%}", "connect its charger")
    if found.is_fed is False:
        return warn(seen, "connect its charger: systems slow down what a battery feeds")
    return ok(seen)


def memory(facts: Facts) -> Finding | None:
    """Whether the default model fits into what is free."""
    free_bytes = meminfo_bytes(facts.readings, "MemAvailable")
    if free_bytes is None:
        return None
    needed = int(_LEAST_MEMORY_BYTES + _MEMORY_RATIO * (facts.model_bytes or 0))
    model = facts.profile.default_model or "a small model"
    seen = f"{free_bytes / 1e9:.1f} GB available, {needed / 1e9:.1f} for {model}"
    if free_bytes < needed:
        return fail(seen, "end what takes it, or name a smaller default_model in the profile")
    return ok(seen)


def swap(facts: Facts) -> Finding | None:
    """Whether the system has begun to swap."""
    total, free = (meminfo_bytes(facts.readings, name) for name in ("SwapTotal", "SwapFree"))
    if not total or free is None or total - free <= 0.05 * total:
        return None
    where = ", ".join(line.split()[0] for line in facts.readings.all("/proc/swaps")[1:] if line.split())
    seen = f"{(total - free) / 1e9:.1f} of {total / 1e9:.1f} GB of swap are used ({where})"
    return warn(seen, "sudo swapoff -a && sudo swapon -a, or start the device anew")


def load(facts: Facts) -> Finding | None:
    """Whether other programs take processors; over one second, with the programs' names."""
    found = _activity(facts.readings)
    if found is None:
        return None
    text = ", ".join(f"{name} {share:.0%}" for share, _, name in found.processes)
    seen = f"{found.busy_ratio:.0%} of the processors busy" + (f" ({text} of one)" if text else "")
    if found.busy_ratio <= _MOST_BUSY_RATIO:
        return ok(seen)
    mend = f"end it: kill {found.processes[0][1]}" if found.processes else "look with top"
    return warn(seen, f"{mend}; or measure when it has ended")


def steal(facts: Facts) -> Finding | None:
    """Whether the hypervisor takes processors."""
    found = _activity(facts.readings)
    if found is None or found.steal_ratio <= _MOST_STEAL_RATIO:
        return None
    seen = f"{found.steal_ratio:.1%} of the time was the hypervisor's"
    return warn(seen, "use a machine of your own, or pairs (--against) instead of stored baselines")
