"""Whether the clocks of processors and GPU can be held."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.device.doctor.facts import Facts
from perfsuite.device.doctor.finding import Finding, fail, ok, warn
from perfsuite.device.probe.processors import Cluster, clusters
from perfsuite.device.probe.sensors import gpu_clocks

#: A clock this far below its upper bound is not at it.
_NEAR_RATIO = 0.97

#: The rule by which a group of users may set governors, for udev: it is applied at each start.
_UDEV_RULE = "/etc/udev/rules.d/60-perfsuite.rules"


def check_governor(facts: Facts) -> Iterator[Finding]:
    """Whether the governor that the profile asks for is offered, and set or settable."""
    found = clusters(facts.readings)
    clocked = [each for each in found if each.path is not None]
    wanted = facts.profile.conditions.governor
    if not found:
        return
    if not clocked:
        why = "the kernel offers no control of clocks, as most virtual machines"
        if wanted is None:
            yield ok("governor", why)
        else:
            yield warn(
                "governor", f"{why}; {wanted} is asked for", "take 'governor' out of the profile, or use a board"
            )
        return
    now = sorted({each.governor or "unknown" for each in clocked})
    if wanted is None:
        yield from _unasked(clocked, now)
    else:
        yield from _asked(facts, clocked, now, wanted)


def _unasked(clocked: list[Cluster], now: list[str]) -> Iterator[Finding]:
    seen = f"{', '.join(now)}; the profile asks for none"
    if now == ["performance"] or _are_fixed(clocked):
        yield ok("governor", seen)
    else:
        yield warn("governor", seen, "governor = 'performance' in [conditions] of the profile")


def _asked(facts: Facts, clocked: list[Cluster], now: list[str], wanted: str) -> Iterator[Finding]:
    seen, user = f"{', '.join(now)}; the profile asks for {wanted}", facts.readings.text("user") or "the user"
    missing = [each for each in clocked if each.governors and wanted not in each.governors]
    if missing:
        offered = ", ".join(missing[0].governors)
        yield fail("governor", f"{seen}, offered are {offered}", "correct 'governor' in [conditions] of the profile")
    elif all(each.is_settable for each in clocked):
        yield ok("governor", f"{seen}, which {user} may set")
    elif now == [wanted]:
        yield ok("governor", f"{seen}; {user} may not change it")
    else:
        yield warn("governor", f"{seen}, which {user} may not set", _allowing(facts, wanted))


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


def check_gpu_governor(facts: Facts) -> Iterator[Finding]:
    """Whether the GPU's governor that the profile asks for is offered, and set or settable."""
    wanted = facts.profile.conditions.gpu_governor
    found = gpu_clocks(facts.readings)
    if wanted is None:
        return
    if not found:
        mend = "take 'gpu_governor' out of the profile, or reach the device as root"
        yield warn("GPU's governor", f"none can be seen; {wanted} is asked for", mend)
    for each in found:
        seen = f"{each.name}: {each.governor}; the profile asks for {wanted}"
        if each.governors and wanted not in each.governors:
            offered = ", ".join(each.governors)
            yield fail("GPU's governor", f"{seen}, offered are {offered}", "correct 'gpu_governor' in the profile")
        elif each.is_settable or each.governor == wanted:
            yield ok("GPU's governor", seen)
        else:
            mend = f"echo {wanted} | sudo tee {each.path}/governor"
            yield warn("GPU's governor", f"{seen}, which may not be set", mend)


def check_bounds(facts: Facts) -> Iterator[Finding]:
    """Whether somebody, or heat, has bound the clocks below what the processors can do."""
    found = [each for each in clusters(facts.readings) if each.upper_khz and each.most_khz]
    capped = [each for each in found if (each.upper_khz or 0) < _NEAR_RATIO * (each.most_khz or 0)]
    if capped:
        told = "; ".join(_capped_text(each) for each in capped)
        mend = " && ".join(f"echo {each.most_khz} | sudo tee {each.path}/scaling_max_freq" for each in capped)
        yield warn("clocks", told, f"let it cool; where that does not help: {mend}")
    elif found:
        yield ok("clocks", "; ".join(_clock_text(each) for each in found))
    boost = facts.readings.text("/sys/devices/system/cpu/cpufreq/boost")
    if boost == "1" or facts.readings.text("/sys/devices/system/cpu/intel_pstate/no_turbo") == "0":
        mend = (
            "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
            if boost == "1"
            else "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
        )
        yield warn("boost", "on: clocks depend on heat and on how many processors work", mend)


def _are_fixed(clocked: list[Cluster]) -> bool:
    return all(each.lower_khz is not None and each.lower_khz == each.upper_khz for each in clocked)


def _capped_text(each: Cluster) -> str:
    upper, most = (each.upper_khz or 0) / 1e6, (each.most_khz or 0) / 1e6
    return f"processors from {each.processors[0]} on are bound to {upper:.2f} GHz, they can {most:.2f}"


def _clock_text(each: Cluster) -> str:
    now = f"{each.now_khz / 1e6:.2f}" if each.now_khz is not None else "?"
    return f"from {each.processors[0]} on: {now} of {(each.most_khz or 0) / 1e6:.2f} GHz"
