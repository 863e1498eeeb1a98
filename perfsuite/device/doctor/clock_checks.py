"""Whether the clocks of processors and GPU can be held."""

from __future__ import annotations

from perfsuite.device.doctor.gathering import Facts, Finding, fail, ok, warn
from perfsuite.device.probe.processors import Cluster, clusters
from perfsuite.device.probe.sensors import gpu_clocks

#: A clock this far below its upper bound is not at it.
_NEAR_RATIO = 0.97

#: The rule by which a group of users may set governors, for udev: it is applied at each start.
_UDEV_RULE = "/etc/udev/rules.d/60-perfsuite.rules"

_BOOST, _NO_TURBO = "/sys/devices/system/cpu/cpufreq/boost", "/sys/devices/system/cpu/intel_pstate/no_turbo"


def governor(facts: Facts) -> Finding | None:
    """Whether the governor that the profile asks for is offered, and set or settable."""
    found = clusters(facts.readings)
    clocked = [each for each in found if each.path is not None]
    wanted = facts.profile.conditions.governor
    if not found:
        return None
    if not clocked:
        why = "the kernel offers no control of clocks, as most virtual machines"
        if wanted is None:
            return ok(why)
        return warn(f"{why}; {wanted} is asked for", "take 'governor' out of the profile, or use a board")
    now = sorted({each.governor or "unknown" for each in clocked})
    if len(clocked) < len(found):
        now.append(f"no control of {sum(len(each.processors) for each in found if each.path is None)} processors")
    if wanted is not None:
        return _asked(facts, clocked, now, wanted)
    seen = f"{', '.join(now)}; the profile asks for none"
    are_fixed = all(each.lower_khz is not None and each.lower_khz == each.upper_khz for each in clocked)
    if now == ["performance"] or are_fixed:
        return ok(seen)
    return warn(seen, "governor = 'performance' in [conditions] of the profile")


def _asked(facts: Facts, clocked: list[Cluster], now: list[str], wanted: str) -> Finding:
    seen, user = f"{', '.join(now)}; the profile asks for {wanted}", facts.readings.text("user") or "the user"
    missing = [each for each in clocked if each.governors and wanted not in each.governors]
    if missing:
        offered = ", ".join(missing[0].governors)
        return fail(f"{seen}, offered are {offered}", "correct 'governor' in [conditions] of the profile")
    if all(each.is_settable for each in clocked):
        return ok(f"{seen}, which {user} may set")
    if now == [wanted]:
        return ok(f"{seen}; {user} may not change it")
    return warn(f"{seen}, which {user} may not set", _allowing(facts, wanted))


def _allowing(facts: Facts, wanted: str) -> str:
    """Return what lets somebody who is no root set governors: once by sudo, or for good by a rule."""
    if facts.profile.reach.way == "adb":
        return "reach it as root (adb root), or take 'governor' out of the profile"
    files = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
    group = facts.readings.text("user") or "perfsuite"
    rule = f'SUBSYSTEM=="cpu", ACTION=="add", RUN+="/bin/sh -c \'chgrp {group} {files}; chmod g+w {files}\'"'
    return (
        f"once: echo {wanted} | sudo tee {files}; for good: put this line into {_UDEV_RULE} and start it anew: {rule}"
    )


def gpu_governor(facts: Facts) -> Finding | None:
    """Whether the GPU's governor that the profile asks for is offered, and set or settable."""
    wanted = facts.profile.conditions.gpu_governor
    found = gpu_clocks(facts.readings)
    if wanted is None:
        return None
    if not found:
        mend = "take 'gpu_governor' out of the profile, or reach the device as root"
        return warn(f"none can be seen; {wanted} is asked for", mend)
    now = ", ".join(f"{each.name}: {each.governor}" for each in found)
    seen = f"{now}; the profile asks for {wanted}"
    for each in found:
        if each.governors and wanted not in each.governors:
            return fail(f"{seen}, offered are {', '.join(each.governors)}", "correct 'gpu_governor' in the profile")
    kept = [each for each in found if not each.is_settable and each.governor != wanted]
    if not kept:
        return ok(seen)
    mend = " && ".join(f"echo {wanted} | sudo tee {each.path}/governor" for each in kept)
    return warn(f"{seen}, which may not be set", mend)


def bounds(facts: Facts) -> Finding | None:
    """Whether somebody, or heat, has bound the clocks below what the processors can do."""
    found = [each for each in clusters(facts.readings) if each.upper_khz and each.most_khz]
    capped = [each for each in found if (each.upper_khz or 0) < _NEAR_RATIO * (each.most_khz or 0)]
    if capped:
        mend = " && ".join(f"echo {each.most_khz} | sudo tee {each.path}/scaling_max_freq" for each in capped)
        return warn("; ".join(map(_capped_text, capped)), f"let it cool; where that does not help: {mend}")
    return ok("; ".join(map(_clock_text, found))) if found else None


def _capped_text(each: Cluster) -> str:
    upper, most = (each.upper_khz or 0) / 1e6, (each.most_khz or 0) / 1e6
    return f"processors from {each.processors[0]} on are bound to {upper:.2f} GHz, they can {most:.2f}"


def _clock_text(each: Cluster) -> str:
    now = f"{each.now_khz / 1e6:.2f}" if each.now_khz is not None else "?"
    return f"from {each.processors[0]} on: {now} of {(each.most_khz or 0) / 1e6:.2f} GHz"


def boost(facts: Facts) -> Finding | None:
    """Whether the clocks go beyond what can be sustained."""
    for path, is_on, off in ((_BOOST, "1", 0), (_NO_TURBO, "0", 1)):
        if facts.readings.text(path) == is_on:
            seen = "on: clocks depend on heat and on how many processors work"
            return warn(seen, f"echo {off} | sudo tee {path}")
    return None
