"""Whether the device can be reached, has the suite, and is free."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.device.doctor.facts import Facts
from perfsuite.device.doctor.finding import Finding, fail, ok, warn
from perfsuite.device.lock.state import Holder

#: Clocks that differ by less are taken for one: a shell tells whole seconds.
_MOST_CLOCK_DIFFERENCE_S = 2.0

#: In place of what would disturb whoever has the device.
_NOT_LOOKED, _LOOK_LATER = "not looked at: that would disturb who has the device", "ask again when it is free"

#: Free space that caches and records of a few runs take, besides the model.
_LEAST_CACHE_BYTES = 500_000_000


def check_reach(facts: Facts) -> Iterator[Finding]:
    """Whether it can be reached; the link's own words say how it is mended."""
    if facts.link_problem is None:
        yield ok("reach", facts.profile.reach.text)
    else:
        seen, _, mend = facts.link_problem.partition("; ")
        yield fail("reach", seen, mend or "look whether it is up, and at [reach] of its profile")


def check_suite(facts: Facts) -> Iterator[Finding]:
    """Whether the suite there is the one here, and finds a llama.cpp."""
    setup = _setup(facts)
    if facts.suite is None:
        yield fail("suite", facts.suite_problem or "is not there", setup)
        return
    there, here = facts.suite.installed, facts.here
    seen = f"perfsuite {there.suite_version}, plans {there.plan_schema}, Python {there.python_version}"
    if (there.suite_version, there.plan_schema) != (here.suite_version, here.plan_schema):
        yield fail("suite", f"{seen}; here perfsuite {here.suite_version}, plans {here.plan_schema}", setup)
    elif facts.suite.digest is not None and facts.here_digest not in (None, facts.suite.digest):
        yield warn("suite", f"{seen}; its files differ from those here", setup)
    else:
        yield ok("suite", seen)
    if there.engine_build_id is None:
        yield _missing_engine(facts, there.engine_problem or "is not there")
    else:
        yield ok("llama.cpp", f"build {there.engine_build_id}")


def _setup(facts: Facts) -> str:
    """Say how a suite is installed there; setup does not touch the machine that it runs on."""
    if facts.profile.reach.way == "local":
        return "install the suite here anew: 'make env' in its checkout, or pip"
    return f"perfsuite devices setup {facts.profile.name}"


def _missing_engine(facts: Facts, problem: str) -> Finding:
    if facts.profile.reach.way != "local":
        return fail("llama.cpp", problem, f"{_setup(facts)} --force")
    seen, _, told = problem.partition("; ")
    return fail("llama.cpp", seen, told or f"{_setup(facts)}; or name a whole build by LLAMA_CPP_LIB_PATH")


def check_lock(facts: Facts) -> Iterator[Finding]:
    """Whether somebody has the device, and whether a crashed run has left anything."""
    if facts.suite is None:
        return
    lock, name = facts.suite.lock, facts.profile.name
    if lock is None:
        yield ok("lock", "nobody has it")
    elif lock.holder is Holder.RUNS:
        yield warn("lock", lock.text, "wait until that has ended")
    else:
        yield fail("lock", lock.text, f"perfsuite devices unlock {name}")
    if facts.suite.restore_file is not None and (lock is None or lock.holder is not Holder.RUNS):
        seen = f"{facts.suite.restore_file}: a run was killed and has left governors set"
        yield warn("leftovers", seen, f"perfsuite devices unlock {name}, or the next run, restores them")


def check_disk(facts: Facts) -> Iterator[Finding]:
    """Whether the model and the caches have room."""
    if facts.suite is None:
        return
    free_bytes, needed = facts.suite.cache_free_bytes, _LEAST_CACHE_BYTES + (facts.model_bytes or 0)
    seen = f"{free_bytes / 1e9:.1f} GB free at {facts.suite.cache_dir}"
    if free_bytes >= needed:
        yield ok("disk", seen)
    else:
        yield fail("disk", f"{seen}, {needed / 1e9:.1f} GB are needed", "make room there, or choose a smaller model")


def check_clock(facts: Facts) -> Iterator[Finding]:
    """Whether the clock is right; times are taken with another one, but histories and certificates go by this."""
    if facts.clock_difference_s is None:
        return
    synchronised = facts.readings.text("clock_synchronised")
    told = {"yes": ", synchronised", "no": ", not synchronised"}.get(synchronised or "", "")
    seen = f"{facts.clock_difference_s:+.0f} s from this machine's{told}"
    if abs(facts.clock_difference_s) <= _MOST_CLOCK_DIFFERENCE_S:
        yield ok("clock", seen)
    else:
        yield warn("clock", seen, "sudo timedatectl set-ntp true")


def check_opencl(facts: Facts) -> Iterator[Finding]:
    """Whether the OpenCL platform of the profile is there; without one in the profile none is asked for."""
    if facts.suite is None:
        return
    wanted = facts.profile.opencl_platform
    if facts.suite.is_busy:
        yield warn("OpenCL", _NOT_LOOKED, _LOOK_LATER)
    elif facts.suite.opencl_device is not None:
        yield ok("OpenCL", facts.suite.opencl_device)
    elif wanted is not None:
        problem = facts.suite.opencl_problem or "no device"
        yield fail("OpenCL", problem, f"install the driver of {wanted}, or correct opencl_platform of the profile")
    else:
        yield ok("OpenCL", "none, and the profile asks for none")


def check_ebpf(facts: Facts) -> Iterator[Finding]:
    """Whether the eBPF recorder works; it is optional, so that its absence is in order."""
    if facts.suite is None:
        return
    if facts.suite.is_busy:
        yield ok("eBPF", _NOT_LOOKED)
    else:
        yield ok("eBPF", facts.suite.ebpf_problem or "works")
