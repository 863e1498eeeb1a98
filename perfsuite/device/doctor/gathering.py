"""Gathering the facts of a device: three questions over its link."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.probe.readings import Readings, take_survey
from perfsuite.device.profile import Profile
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import LinkError, PerfsuiteError
from perfsuite.records.bundle import BundleManifest


class Grade(str, Enum):
    """How bad a finding is."""

    OK = "ok"
    #: Measurements are worth less than they could be.
    WARN = "warn"
    #: Nothing can be measured, or what is measured means nothing.
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a doctor."""

    #: What was looked at: the name that `perfsuite.device.doctor.examination` has for the check.
    what: str
    grade: Grade
    #: What was seen.
    seen: str
    #: The command, or what to do; "" where it is in order.
    mend: str = ""


#: For checks, which have no name themselves.
ok, warn, fail = (partial(Finding, "", grade) for grade in Grade)


NO_READINGS = Readings(lines={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A suite, by what has to be alike on both sides."""

    suite_version: str
    #: The version of the plans that it reads.
    plan_schema: int
    #: The llama.cpp that would be measured; None with the reason in `engine_problem`.
    engine_build_id: str | None
    engine_problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteState:
    """What the suite on a device says of itself and of what it keeps there."""

    installed: Installed
    #: Who has the device; None where nobody has.
    lock: LockOwner | None
    #: The file by which a run restores what it has set, where there is one.
    restore_file: str | None
    #: Where models and compiled code are kept, and what is free there.
    cache_dir: str
    cache_free_bytes: int
    #: Whether somebody may be measuring, so that nothing was started for the last three.
    is_busy: bool
    #: The OpenCL device that would be measured; None with the reason in `opencl_problem`.
    opencl_device: str | None
    opencl_problem: str | None
    #: The one thing that keeps the eBPF recorder from working; None where nothing does.
    ebpf_problem: str | None
    #: What keeps llama.cpp's OpenCL backend from that device, its kernels' compiling among it; None where nothing does.
    backend_problem: str | None
    #: The bundle by which it was set up; None on this machine.
    bundle: BundleManifest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A device as it is now, and the suite here."""

    profile: Profile
    here: Installed
    #: Weights of the default model; None where it is not known.
    model_bytes: int | None
    #: Why it cannot be reached; then nothing below is known.
    link_problem: str | None = None
    #: The device's clock less that of this machine; whole seconds, for shells tell no less.
    clock_difference_s: float | None = None
    readings: Readings = NO_READINGS
    #: None with the reason in `suite_problem`.
    suite: SuiteState | None = None
    suite_problem: str | None = None


def gather(
    target: Target,
    profile: Profile,
    *,
    here: Installed,
    own_state: Callable[[str | None], SuiteState],
    model_bytes: int | None,
) -> Facts:
    """Ask a device all that the checks look at; `own_state` looks at this machine, for an OpenCL platform."""
    facts = Facts(profile=profile, here=here, model_bytes=model_bytes)
    try:
        facts = replace(facts, clock_difference_s=_clock_difference_s(target))
        facts = replace(facts, readings=take_survey(target, is_twice=True))
        suite, problem = _suite(target, profile, own_state)
        return replace(facts, suite=suite, suite_problem=problem)
    except LinkError as error:
        return replace(facts, link_problem=str(error).removeprefix(f"{target.text}: "))


def _clock_difference_s(target: Target) -> float | None:
    """Return the device's time less this machine's; 0 where it lies between the beginning and the end of asking."""
    target.run(["true"])  # connects
    before_s = time.time()
    told = target.run(["date", "+%s"]).text.strip()
    after_s = time.time()
    if not told.lstrip("-").isdigit():
        return None
    there_s = float(told)
    return min(0.0, there_s + 1.0 - before_s) if there_s < before_s else max(0.0, there_s - after_s)


def _suite(
    target: Target, profile: Profile, own_state: Callable[[str | None], SuiteState]
) -> tuple[SuiteState | None, str | None]:
    """Ask the bundle of a device; this machine is looked at from here."""
    from perfsuite.device.doctor.bundle_state import bundle_state  # which says a `SuiteState`

    try:
        if profile.reach.way == "local":
            return own_state(profile.opencl_platform), None
        return bundle_state(target, profile.reach.home, profile.opencl_platform), None
    except LinkError:
        raise
    except PerfsuiteError as error:
        return None, str(error)
