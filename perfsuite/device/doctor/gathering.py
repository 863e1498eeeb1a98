"""Gathering the facts of a device: three questions over its link."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.probe.readings import Readings, take_survey
from perfsuite.device.profile import Profile
from perfsuite.device.setup.needs import NO_PROGRAM, QUESTION, Installed, last_answer, missing_suite, suite_python
from perfsuite.device.setup.suite_wheel import suite_digest
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError, LinkError, MeasurementError
from perfsuite.records.bundle import BundleManifest
from perfsuite.records.codec import rebuilt


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
class SuiteState:
    """What the suite on a device says of itself and of what it keeps there."""

    installed: Installed
    #: Sixteen hex digits over what setup installed; None for one that setup did not install.
    digest: str | None
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
    #: The bundle by which it was set up; None where the suite there is in Python.
    bundle: BundleManifest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A device as it is now, and the suite here."""

    profile: Profile
    here: Installed
    here_digest: str | None
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


def read_suite_state(plain: Mapping[str, Any]) -> SuiteState:
    """Read what ``devices_installed --state`` printed; that of another version is a `DeviceError`."""
    try:
        return rebuilt(plain, SuiteState)
    except ValueError:
        raise DeviceError("it is of another version than the suite here") from None


#: An OpenCL driver that compiles for the first time takes its time.
_STATE_LIMIT_S = 300.0


def gather(
    target: Target, profile: Profile, python: Sequence[str], *, here: Installed, model_bytes: int | None
) -> Facts:
    """Ask a device all that the checks look at; `python` are the words that run its Python with the suite."""
    facts = Facts(profile=profile, here=here, here_digest=_digest_here(), model_bytes=model_bytes)
    try:
        facts = replace(facts, clock_difference_s=_clock_difference_s(target))
        facts = replace(facts, readings=take_survey(target, is_twice=True))
        suite, problem = _suite(target, profile, python)
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


def _suite(target: Target, profile: Profile, python: Sequence[str]) -> tuple[SuiteState | None, str | None]:
    """Ask the bundle of a device that has one, else its Python."""
    from perfsuite.device.doctor.bundle_state import bundle_state  # which says a `SuiteState`

    if profile.reach.way != "local":
        try:
            if (state := bundle_state(target, profile.reach.home, profile.opencl_platform)) is not None:
                return state, None
        except DeviceError as error:
            return None, str(error)
    question = [*python, *QUESTION, "--state", profile.opencl_platform or ""]
    try:
        answer = target.run(question, limit_s=_STATE_LIMIT_S)
    except MeasurementError as error:
        return None, str(error)
    told = last_answer(answer.text)
    if told is None:
        is_missing = answer.status in NO_PROGRAM
        return None, missing_suite(python[0]) if is_missing else f"does not run: {answer.last_words}"
    try:
        return read_suite_state(told), None
    except DeviceError as error:
        return None, str(error)


def _digest_here() -> str | None:
    try:
        return suite_digest()
    except (DeviceError, OSError):
        return None


def python_words(profile: Profile, own: Path) -> tuple[str, ...]:
    """Return what runs the suite's Python on a device; on this machine it is this one."""
    if profile.reach.way == "local":
        return (str(own),)
    return (suite_python(profile.reach.home),)
