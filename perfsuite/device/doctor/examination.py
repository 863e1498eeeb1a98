"""All checks of a device in the order in which they are shown, and those of the suite that is on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perfsuite.device.doctor import hardware_checks, rest_checks
from perfsuite.device.doctor.gathering import Facts, Finding, SuiteState, fail, ok, warn

#: Clocks that differ by less are taken for one: a shell tells whole seconds.
_MOST_CLOCK_DIFFERENCE_S = 2.0

#: In place of what would disturb whoever has the device.
_NOT_LOOKED = "not looked at: that would disturb who has the device"

#: Free space that caches and records of a few runs take, besides the model.
_LEAST_CACHE_BYTES = 500_000_000


def _reach(facts: Facts) -> Finding:
    """Whether it can be reached; the link's own words say how it is fixed."""
    if facts.link_problem is None:
        return ok(facts.profile.reach.text)
    seen, _, mend = facts.link_problem.partition("; ")
    return fail(seen, mend or "look whether it is up, and at [reach] of its profile")


def _suite(facts: Facts) -> Finding:
    """Whether the suite there is the one here."""
    if facts.suite is None:
        return fail(facts.suite_problem or "is not there", _setup(facts))
    there, here = facts.suite.installed, facts.here
    seen = f"perfsuite {there.suite_version}, plans {there.plan_schema}"
    if (there.suite_version, there.plan_schema) != (here.suite_version, here.plan_schema):
        return fail(f"{seen}; here perfsuite {here.suite_version}, plans {here.plan_schema}", _setup(facts))
    return ok(seen)


def _engine(facts: Facts, suite: SuiteState) -> Finding:
    problem = suite.installed.engine_problem or "is not there"
    if suite.installed.engine_build_id is not None:
        return ok(f"build {suite.installed.engine_build_id}")
    if facts.profile.reach.way != "local":
        return fail(problem, _setup(facts))
    seen, _, told = problem.partition("; ")
    return fail(seen, told or f"{_setup(facts)}; or name a whole build by LLAMA_CPP_LIB_PATH")


def _setup(facts: Facts) -> str:
    """Say how a suite is installed there; setup does not touch the machine that it runs on."""
    if facts.profile.reach.way == "local":
        return "install the suite here anew: 'make env' in its checkout, or pip"
    return f"perfsuite devices setup {facts.profile.name}"


def _lock(facts: Facts, suite: SuiteState) -> Finding:
    if suite.lock is None:
        return ok("nobody has it")
    unlock = f"perfsuite devices unlock {facts.profile.name} --force"
    return warn(f"held by {suite.lock.text}", f"wait until that has ended; or {unlock}, which ends it")


def _leftovers(facts: Facts, suite: SuiteState) -> Finding | None:
    """Whether a crashed run has left anything; the file of one that is under way is its own."""
    if suite.restore_file is None or suite.lock is not None:
        return None
    seen = f"{suite.restore_file}: a run was killed and has left governors set"
    return warn(seen, f"perfsuite devices unlock {facts.profile.name}, or the next run, restores them")


def _disk(facts: Facts, suite: SuiteState) -> Finding:
    needed = _LEAST_CACHE_BYTES + (facts.model_bytes or 0)
    seen = f"{suite.cache_free_bytes / 1e9:.1f} GB free at {suite.cache_dir}"
    if suite.cache_free_bytes >= needed:
        return ok(seen)
    return fail(f"{seen}, {needed / 1e9:.1f} GB are needed", "make room there, or choose a smaller model")


def _clock(facts: Facts) -> Finding | None:
    """Whether the clock is right; times are taken with another one, but histories and certificates go by this."""
    if facts.clock_difference_s is None:
        return None
    synchronised = facts.readings.text("clock_synchronised")
    told = {"yes": ", synchronised", "no": ", not synchronised"}.get(synchronised or "", "")
    seen = f"{facts.clock_difference_s:+.0f} s from this machine's{told}"
    if abs(facts.clock_difference_s) <= _MOST_CLOCK_DIFFERENCE_S:
        return ok(seen)
    return warn(seen, "sudo timedatectl set-ntp true")


def _opencl(facts: Facts, suite: SuiteState) -> Finding:
    """Whether the OpenCL platform of the profile is there; without one in the profile none is asked for."""
    wanted = facts.profile.opencl_platform
    if suite.is_busy:
        return warn(_NOT_LOOKED, "ask again when it is free")
    if suite.opencl_device is not None:
        return ok(suite.opencl_device)
    if wanted is None:
        return ok("none, and the profile asks for none: kernels are left out")
    problem = suite.opencl_problem or "no device"
    return fail(problem, f"install the driver of {wanted}, or correct opencl_platform of the profile")


def _ebpf(_: Facts, suite: SuiteState) -> Finding:
    """Whether the eBPF recorder works; it is optional, so that its absence is in order."""
    return ok(_NOT_LOOKED if suite.is_busy else suite.ebpf_problem or "works")


#: Returns None where there is nothing to say.
Check = Callable[[Facts], Finding | None]


def _of_suite(check: Callable[[Facts, SuiteState], Finding | None]) -> Check:
    """Return a check that says nothing where the suite there does not."""
    return lambda facts: None if facts.suite is None else check(facts, facts.suite)


#: What needs the device is left out where it cannot be reached.
_CHECKS: tuple[tuple[str, Check], ...] = (
    ("suite", _suite),
    ("llama.cpp", _of_suite(_engine)),
    ("lock", _of_suite(_lock)),
    ("leftovers", _of_suite(_leftovers)),
    ("C library", hardware_checks.c_library),
    ("disk", _of_suite(_disk)),
    ("memory", rest_checks.memory),
    ("swap", rest_checks.swap),
    ("processors", hardware_checks.cores),
    ("governor", hardware_checks.governor),
    ("GPU's governor", hardware_checks.gpu_governor),
    ("GPU's clock", hardware_checks.gpu_clock),
    ("clocks", hardware_checks.bounds),
    ("boost", hardware_checks.boost),
    ("thermal zones", hardware_checks.thermal_zones),
    ("temperature", rest_checks.heat),
    ("throttling", rest_checks.throttling),
    ("battery", rest_checks.charge),
    ("load", rest_checks.load),
    ("steal", rest_checks.steal),
    ("clock", _clock),
    ("OpenCL's loader", hardware_checks.opencl_loader),
    ("OpenCL's drivers", hardware_checks.opencl_drivers),
    ("OpenCL", _of_suite(_opencl)),
    ("OpenCL backend", _of_suite(hardware_checks.opencl_backend)),
    ("eBPF", _of_suite(_ebpf)),
)


def examine(facts: Facts) -> tuple[Finding, ...]:
    """Return what was found; of a device that cannot be reached, that alone."""
    reach = replace(_reach(facts), what="reach")
    if facts.link_problem is not None:
        return (reach,)
    found = ((what, check(facts)) for what, check in _CHECKS)
    return (reach, *(replace(each, what=what) for what, each in found if each is not None))
