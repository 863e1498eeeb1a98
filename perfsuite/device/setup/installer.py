"""The program that installs the suite on a device. It runs there, out of the very wheel that it installs.

All that it imports is the standard library and modules of the suite that do the same, for nothing else is there yet. It
gets what to do by one argument in JSON, and says how far it is by lines of JSON. It ends, with all that it has
started, when its input ends: that is how a desk stops it, and all that it sees of a lost link.

While it is at work it holds the device's lock: compiling would disturb who measures, and two setups would mix. What was
installed before stays in use until the new one has shown that it runs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from perfsuite.device.lock import hold_lock
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.setup.installations import (
    LINK,
    WHEELS,
    check_link,
    choose,
    find_installation,
    mark,
    new_folder,
    remove_broken,
    remove_made,
    remove_others,
    remove_sent,
)
from perfsuite.device.setup.steps import Steps, telling_line
from perfsuite.errors import DeviceError, PerfsuiteError

LOG_NAME = "setup.log"

_PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color")

#: What a device needs beside the base: its OpenCL kernels are measured there.
_EXTRAS = "opencl"

#: Longest to go on after the input has ended, for the lock to be given back.
_UNWINDING_LIMIT_S = 20.0


def install(request: Mapping[str, Any], steps: Steps, home: Path) -> dict[str, Any]:
    """Install what the request names unless it is there; return what the installed suite says of itself.

    Raises DeviceError: a step failed; what was there before is still in use.
    """
    check_link(home)
    remove_broken(home)
    found = None if request["force"] else find_installation(home, request["identity"])
    if found is not None:
        try:
            return _chosen(found, home, request, _asked(found, steps, request), is_new=False)
        except DeviceError as error:
            if steps.is_ended:
                raise
            _tell(step=f"what is there does not run, so it is installed anew: {error}")
    _require_room(home, request["least_free_bytes"])
    folder = _made(home, steps, request)
    told = _asked(folder, steps, request)
    mark(folder, identity=request["identity"], by=request["by"])
    return _chosen(folder, home, request, told, is_new=True)


def _made(home: Path, steps: Steps, request: Mapping[str, Any]) -> Path:
    """Make a new environment with the suite in it; its folder has no mark yet."""
    folder = new_folder(home, request["identity"]["digest"])
    limits = request["limits_s"]
    steps.run("making an environment", [sys.executable, "-I", "-m", "venv", str(folder)], limits["environment"])
    pip = [str(folder / "bin" / "python"), *_PIP]
    sources = [word for place in request["wheel_dirs"] for word in ("--find-links", place)]
    sources += ["--no-index"] if request["is_offline"] else []
    engine = _engine_wheels(home, steps, request, pip, sources)
    command = [*pip, "install", "--find-links", str(engine), *sources, f"{request['wheel']}[{_EXTRAS}]"]
    steps.run("installing the suite and what it requires", command, limits["install"])
    return folder


def _engine_wheels(home: Path, steps: Steps, request: Mapping[str, Any], pip: list[str], sources: list[str]) -> Path:
    """Return the folder with llama.cpp's wheel, which is compiled once.

    Without pip's own cache, which would hand out a wheel that was compiled with other settings.
    """
    requirement = str(request["identity"]["engine"])
    folder = home / WHEELS / requirement
    if list(folder.glob("*.whl")) and not request["force"]:
        return folder
    partial = home / WHEELS / f".{requirement}"
    for path in (folder, partial):
        shutil.rmtree(path, ignore_errors=True)
    partial.mkdir(parents=True)
    what = f"{requirement}, which is compiled there unless a wheel is found (tens of minutes on a small board)"
    command = [*pip, "wheel", "-v", "--no-deps", "--no-cache-dir", "-w", str(partial), *sources, requirement]
    steps.run(what, [*_without_amx(Path("/proc/cpuinfo")), *command], request["limits_s"]["engine"])
    partial.rename(folder)
    return folder


def _without_amx(cpuinfo: Path) -> list[str]:
    """Return what a compile is started with so that llama.cpp does without AMX, whose tiles GCC 12.2 loads wrongly."""
    has_amx = cpuinfo.exists() and " amx_int8" in cpuinfo.read_text("utf-8", "replace")
    return ["env", "CFLAGS=-U__AMX_INT8__", "CXXFLAGS=-U__AMX_INT8__"] if has_amx else []


def _asked(folder: Path, steps: Steps, request: Mapping[str, Any]) -> dict[str, Any]:
    """Let an installed suite say what it is, by which it shows that it runs."""
    command = [str(folder / "bin" / "python"), *request["question"]]
    lines = steps.run("asking the installed suite what it is", command, request["limits_s"]["question"])
    answer = next((line for line in reversed(lines) if line.startswith("{")), None)
    if answer is None:
        raise DeviceError(f"the installed suite does not say what it is, but: {telling_line(lines, 0)}")
    told: dict[str, Any] = json.loads(answer)
    return told


def _chosen(
    folder: Path, home: Path, request: Mapping[str, Any], told: dict[str, Any], *, is_new: bool
) -> dict[str, Any]:
    choose(home, folder)
    remove_others(home, folder)
    remove_sent(home, request["identity"]["digest"], request["wheels"])
    remove_made(home, request["identity"]["engine"])
    return {"installed": told, "is_new": is_new, "python": str(home / LINK / "bin" / "python")}


def _require_room(home: Path, least_bytes: int) -> None:
    free_bytes = shutil.disk_usage(home).free
    if free_bytes < least_bytes:
        free_gib, least_gib = (each / 2**30 for each in (free_bytes, least_bytes))
        raise DeviceError(f"{home}: {free_gib:.1f} GiB are free, an installation needs {least_gib:.1f} GiB; make room")


def _tell(**event: Any) -> None:
    with suppress(OSError):  # nobody listens any more: the input ends as well
        print(json.dumps(event), flush=True)


def _end_with_input(steps: Steps) -> None:
    while os.read(0, 4096):
        pass
    steps.end()
    time.sleep(_UNWINDING_LIMIT_S)
    os._exit(3)


def main(text: str) -> int:
    """Do what the argument says; a failure is reported, and the exit code 1."""
    request = json.loads(text)
    home = Path(request["home"])
    steps = Steps(home / LOG_NAME, _tell)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: steps.end())
    threading.Thread(target=_end_with_input, args=(steps,), daemon=True).start()
    owner = LockOwner.here(**request["owner"])
    lock_folder = Path(request["lock_folder"]) if request.get("lock_folder") else None  # None: the device's own place
    try:
        with hold_lock(owner, name=request["device"], folder=lock_folder):
            home.mkdir(parents=True, exist_ok=True)
            (home / LOG_NAME).write_bytes(b"")
            _tell(done=install(request, steps, home))
    except PerfsuiteError as error:
        _tell(failed=str(error))
        return 1
    except OSError as error:
        _tell(failed=f"{error.filename or 'the system'}: {error.strerror or error}")
        return 1
    return 0


def run(text: str) -> NoReturn:
    """Run as a program; its threads, which wait, are not waited for."""
    os._exit(main(text))
