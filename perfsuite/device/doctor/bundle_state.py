"""What a device says of its bundle; no library is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from perfsuite.device.doctor.gathering import Installed, SuiteState
from perfsuite.device.governors import FILE_NAME, STATE_FOLDER
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.setup.bundle_scripts import CURRENT, FOLDER, OLD_SETUP
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError
from perfsuite.records.bundle import MANIFEST_NAME, WORKER, parse_manifest

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

#: Prints the OpenCL devices as the bundle's program sees them, or why there are none.
_DEVICES = f"""
home=$1; case $home in '~'|'~/'*) home=$HOME${{home#'~'}};; esac
exec "$home/{FOLDER}/{CURRENT}/{WORKER}" devices
"""
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
    is_busy = lock_owner is not None
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
        cache_free_bytes=_free_bytes(free),
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


def _free_bytes(blocks: str) -> int:
    """Return what blocks and their size come to; 0 where the device says neither."""
    found = [int(each) for each in blocks.split() if each.isdecimal()]
    return found[0] * found[1] if len(found) == 2 else 0


def _opencl(target: Target, home: str, wanted: str | None) -> tuple[str | None, str | None]:
    """Return the device that would be measured, or why there is none."""
    answer = target.run(["sh", "-c", _DEVICES, "perfsuite", home], limit_s=_DEVICES_LIMIT_S)
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


class _Device(msgspec.Struct):
    """What the doctor shows of an OpenCL device."""

    platform_name: str
    device_name: str
    driver_version: str
    type: str
