"""Gathering the facts of a device: three questions over its link."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

import msgspec

from perfsuite.device.governors import FILE_NAME, STATE_FOLDER
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.probe.readings import Readings, take_survey
from perfsuite.device.profile import Profile
from perfsuite.device.setup.bundle_scripts import CURRENT, FOLDER, OLD_SETUP, suite_command
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError, LinkError, PerfsuiteError
from perfsuite.records.bundle import MANIFEST_NAME, WORKER, BundleManifest, parse_manifest


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


_NO_READINGS = Readings(lines={})


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
    readings: Readings = _NO_READINGS
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
        if profile.reach.way == "local":
            return replace(facts, suite=own_state(profile.opencl_platform))
        return replace(facts, suite=bundle_state(target, profile.reach.home, profile.opencl_platform))
    except LinkError as error:
        return replace(facts, link_problem=str(error).removeprefix(f"{target.text}: "))
    except PerfsuiteError as error:
        return replace(facts, suite_problem=str(error))


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


# what a device says of its bundle; no library is loaded


#: Ends with 1 where there is no bundle, with 3 where an earlier version has set the device up. Else: where its program
#: keeps files, the file of governors that were left set, what is free, what its lock is, and then its manifest.
_SCRIPT = f"""
home=$1; case $home in '~'|'~/'*) home=$HOME${{home#'~'}};; esac
b=$home/{FOLDER}/{CURRENT}; [ -f "$b/{MANIFEST_NAME}" ] || {{ [ ! -e "$home/venv" ] || exit 3; exit 1; }}
c=${{XDG_CACHE_HOME:-$HOME/.cache}}/perfsuite; [ -d "$c" ] || c=$home
echo "$c"; r=$c/{STATE_FOLDER}/{FILE_NAME}; [ -e "$r" ] && echo "$r" || echo
stat -f -c '%a %S' "$c" 2>/dev/null || df -Pk "$c" 2>/dev/null | {{ read -r _; read -r _ _ _ a _; echo "$a 1024"; }}
"$b/{WORKER}" lock state | tr -d '\\n'; echo
cat "$b/{MANIFEST_NAME}"
"""

_OLD = 3

_OLD = 3

#: Drivers compile, and look for their devices, when they are loaded first.
_DEVICES_LIMIT_S = 120.0

#: Before a reason of the program, on one line.
_FAILURE_MARK = "perfsuite-worker-failed: "

_NOT_ASKED = "not looked at"


def bundle_state(target: Target, home: str, opencl_platform: str | None) -> SuiteState:
    """Return what a device's bundle says.

    While somebody may measure there, no OpenCL driver is loaded, which would disturb him.

    Raises DeviceError: there is no bundle, or none of this version; LinkError: the device cannot be reached.
    """
    answer = target.run(["sh", "-c", _SCRIPT, "perfsuite", home])
    lines = answer.text.split("\n", 4)
    if answer.status or len(lines) != 5:
        raise DeviceError(OLD_SETUP if answer.status == _OLD else f"is not there (no {home}/{FOLDER})")
    cache_dir, restore_file, free, lock, manifest_text = lines
    told = _last_answer(lock)
    if told is None:
        raise DeviceError(f"its program does not run: {answer.last_words}")
    manifest = parse_manifest(manifest_text, f"{home}/{FOLDER}/{CURRENT}/{MANIFEST_NAME}")
    lock_owner = None if told["lock"] is None else LockOwner.from_plain(told["lock"])
    is_busy, blocks = lock_owner is not None, [int(each) for each in free.split() if each.isdecimal()]
    device, problem = (None, None) if is_busy else _opencl(target, home, opencl_platform)
    return SuiteState(
        installed=Installed(
            suite_version=manifest.suite_version,
            plan_schema=manifest.plan_schema,
            engine_build_id=manifest.engine.build_id,
        ),
        lock=lock_owner,
        restore_file=restore_file or None,
        cache_dir=cache_dir,
        cache_free_bytes=math.prod(blocks) if len(blocks) == 2 else 0,
        is_busy=is_busy,
        opencl_device=device,
        opencl_problem=problem,
        ebpf_problem=_NOT_ASKED,
        backend_problem=_NOT_ASKED,
        bundle=manifest,
    )


def _last_answer(output: str) -> Mapping[str, Any] | None:
    """Return the last line that is JSON of an object; None where there is none."""
    for line in reversed(output.splitlines()):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        return told if isinstance(told, dict) else None
    return None


class _Device(msgspec.Struct):
    """What the doctor shows of an OpenCL device."""

    platform_name: str
    device_name: str
    driver_version: str
    type: str


def _opencl(target: Target, home: str, wanted: str | None) -> tuple[str | None, str | None]:
    """Return the device that would be measured, as the bundle's program sees it, or why there is none."""
    answer = target.run(suite_command(home, "devices"), limit_s=_DEVICES_LIMIT_S)
    line = (answer.text.strip().splitlines() or [answer.last_words])[-1]
    if answer.status:
        return None, line.removeprefix(_FAILURE_MARK) or f"its program ended with {answer.status}"
    try:
        found = msgspec.json.decode(line, type=list[_Device])
    except msgspec.MsgspecError:
        raise DeviceError(f"its program names no OpenCL devices, but says {line[:80]!r}") from None
    suitable = [each for each in found if (wanted or "").lower() in each.platform_name.lower()]
    chosen = min(suitable, key=lambda each: each.type != "gpu", default=None)  # as a run would
    if chosen is None:
        seen = ", ".join(sorted({each.platform_name for each in found})) or "none"
        return None, f"no OpenCL platform has {wanted!r} in its name; there are: {seen}"
    return f"{chosen.platform_name}: {chosen.device_name} ({chosen.type}, driver {chosen.driver_version})", None
