"""Gathering the facts of a device: three questions over its link."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perfsuite.device.doctor.facts import Facts, SuiteState, read_suite_state
from perfsuite.device.probe.readings import take_survey
from perfsuite.device.profile import Profile
from perfsuite.device.setup.installed import NO_PROGRAM, QUESTION, Installed, last_answer, missing_suite, suite_python
from perfsuite.device.setup.suite_wheel import suite_digest
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError, LinkError, MeasurementError

#: An OpenCL driver that compiles for the first time takes its time.
_STATE_LIMIT_S = 180.0


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
