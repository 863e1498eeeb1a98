"""What of a device decides what is measured on it: its processors and their clocks, sensors, C library, OpenCL."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.device.doctor.gathering import Facts, Finding, SuiteState, fail, ok, warn
from perfsuite.device.probe.processors import Cluster, big_processors, clusters
from perfsuite.device.probe.sensors import gpu_clocks, zones
from perfsuite.device.setup.board_survey import check_fit, read_board
from perfsuite.errors import DeviceError

#: What is named of many thermal zones.
_MOST_NAMED = 4

_KGSL = "/sys/class/kgsl/kgsl-3d0"


def cores(facts: Facts) -> Finding | None:
    """Whether workers stay on one kind of processors, where there are two."""
    found = clusters(facts.readings)
    all_of_them = sorted(cpu for each in found for cpu in each.processors)
    if not all_of_them:
        return None
    big = big_processors(found)
    if not big:
        return ok(f"{len(all_of_them)}, of which none is known to be smaller than others")
    little = [cpu for cpu in all_of_them if cpu not in big]
    seen = f"big {_ranges(big)}, little {_ranges(little)}"
    used = facts.profile.conditions.processors or all_of_them
    if set(used) & set(big) and set(used) & set(little):
        mend = f"processors = [{', '.join(map(str, big))}] in [conditions] of the profile"
        return warn(f"{seen}; workers use both, and wait for the slower ones", mend)
    return ok(f"{seen}; workers use {_ranges(sorted(used))}")


def _ranges(processors: Sequence[int]) -> str:
    """Return numbers as the kernel writes them: ``0-3,7``."""
    text, first = [], None
    for cpu in processors:
        first = cpu if first is None else first
        if cpu + 1 not in processors:
            text.append(str(cpu) if cpu == first else f"{first}-{cpu}")
            first = None
    return ",".join(text)


def thermal_zones(facts: Facts) -> Finding | None:
    """Whether heat can be read, and the zones that the profile counts are there."""
    found = zones(facts.readings)
    if not found:
        return None
    known = sorted({each.type for each in found if each.celsius is not None})
    seen = f"{sum(each.celsius is not None for each in found)} of {len(found)} can be read"
    if not known:
        return warn(seen, "reach it as root; else nothing tells that it was slowed down by heat")
    named = f"{seen}: {', '.join(known[:_MOST_NAMED])}{', ...' if len(known) > _MOST_NAMED else ''}"
    if unread := sorted({each.type for each in found if each.celsius is None} - set(known)):
        named += f"; not {', '.join(unread)}"
    missing = [kind for kind in facts.profile.conditions.thermal_zones if kind not in known]
    if missing:
        return warn(f"{named}; none is {', '.join(missing)}", "correct 'thermal_zones' in [conditions] of the profile")
    return ok(named)


def gpu_clock(facts: Facts) -> Finding | None:
    """Whether the GPU's clock can be read, so that a kernel's slower time can be distinguished from a slower clock."""
    found = gpu_clocks(facts.readings)
    rates = [(each, facts.readings.count(f"{each.path}/cur_freq")) for each in found]
    read = [f"{each.name} at {rate / 1e6:.0f} MHz" for each, rate in rates if rate is not None]
    if read:
        return ok(", ".join(read))
    if found:
        files = " ".join(f"{each.path}/cur_freq" for each in found)
        return warn(f"{found[0].name}: its clock may not be read", f"sudo chmod a+r {files}, or reach it as root")
    if facts.readings.text(f"{_KGSL}/gpu_model") is not None:
        return warn("the Adreno's clock may not be read", f"sudo chmod a+r {_KGSL}/gpuclk, or reach it as root")
    return None


def c_library(facts: Facts) -> Finding | None:
    """Whether the C library has what the bundle there needs."""
    told = facts.readings.text("libc")
    manifest = facts.suite.bundle if facts.suite is not None else None
    if manifest is None:
        return ok(told) if told else None
    try:
        check_fit(facts.profile.name, read_board(facts.readings), manifest)
    except DeviceError as error:
        seen, _, mend = str(error).removeprefix(f"{facts.profile.name}: ").partition("; ")
        return fail(seen, mend)
    needed = f"glibc {manifest.least_glibc}" if manifest.least_glibc else "none: it brings its own"
    return ok(f"{told or 'none is known'}; the bundle needs {needed}")


def opencl_loader(facts: Facts) -> Finding | None:
    """Whether OpenCL's loader reads layers, by which llama.cpp's commands are followed; a profile asks for OpenCL."""
    loaders, layered = facts.readings.all("opencl_loader"), facts.readings.all("opencl_layers")
    is_asked = facts.profile.opencl_platform is not None
    package = "Debian's ocl-icd-libopencl1 has one"
    if not loaders:
        return warn("no libOpenCL.so where systems have it", f"install one: {package}") if is_asked else None
    if loaders[0] in layered:
        return ok(f"{loaders[0]}, which reads layers")
    seen = f"{loaders[0]} reads no layers: kernels of llama.cpp are not told apart"
    if not is_asked:
        return ok(seen)
    return warn(seen, f"put a loader that knows OPENCL_LAYERS before it: {package}, or Khronos' OpenCL-ICD-Loader")


def opencl_drivers(facts: Facts) -> Finding | None:
    """Whether the libraries that OpenCL's loader is asked to load are there."""
    files = (match[0] for match in facts.readings.names(r"/etc/OpenCL/vendors/.*\.icd"))
    named = [(icd, library) for icd in files for line in facts.readings.all(icd) if (library := line.strip())]
    there = facts.readings.all("opencl_driver")
    lost = [(icd, library) for icd, library in named if library not in there]
    if lost:
        icd, library = lost[0]
        return warn(f"{icd} names {library}, which is not there", f"install its package anew, or sudo rm {icd}")
    return ok(", ".join(library for _, library in named)) if named else None


def opencl_backend(facts: Facts, suite: SuiteState) -> Finding | None:
    """Whether llama.cpp's OpenCL backend takes the device, and its kernels compile there."""
    if suite.is_busy or facts.profile.opencl_platform is None:
        return None
    if suite.backend_problem is None:
        return ok("its kernels compile")
    seen, _, mend = suite.backend_problem.partition("; ")
    return warn(seen, mend or "measure without --backend=opencl")


# whether the clocks of processors and GPU can be held


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
        seen = (
            f"processors from {each.processors[0]} on are bound to {_ghz(each.upper_khz)} GHz, "
            f"they can {_ghz(each.most_khz)}"
            for each in capped
        )
        return warn("; ".join(seen), f"let it cool; where that does not help: {mend}")
    seen = (f"from {each.processors[0]} on: {_ghz(each.now_khz)} of {_ghz(each.most_khz)} GHz" for each in found)
    return ok("; ".join(seen)) if found else None


def _ghz(khz: int | None) -> str:
    return "?" if khz is None else f"{khz / 1e6:.2f}"


def boost(facts: Facts) -> Finding | None:
    """Whether the clocks go beyond what can be sustained."""
    for path, is_on, off in ((_BOOST, "1", 0), (_NO_TURBO, "0", 1)):
        if facts.readings.text(path) == is_on:
            seen = "on: clocks depend on heat and on how many processors work"
            return warn(seen, f"echo {off} | sudo tee {path}")
    return None
