"""What an installation needs on a device, and by which command there each thing that is missing is fixed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfsuite.device.probe.readings import Readings
from perfsuite.errors import DeviceError
from perfsuite.records.codec import rebuilt

#: What Python is given to ask an installed suite; the answer is the last line, in JSON.
QUESTION = ("-I", "-m", "perfsuite.cli.devices_installed")

#: With which a shell says that there is no such program, or that it cannot be run.
NO_PROGRAM = (126, 127)


def suite_python(home: str) -> str:
    """Return the Python of the suite on a device, below the `home` of its ``[reach]``."""
    return f"{home}/venv/bin/python"


def suite_command(home: str, program: Sequence[str], python: Sequence[str]) -> tuple[str, ...]:
    """Return the command that becomes the program of a device's bundle, or its Python where it has no bundle.

    Each has words of its own.
    """
    script = (
        "home=$1; case $home in '~'|'~/'*) home=$HOME${home#'~'};; esac; "
        f'own="$home/bundle/current/perfsuite-worker"; if [ -x "$own" ]; then exec "$own" {shlex.join(program)}; fi; '
        f'exec "$home/venv/bin/python" {shlex.join(python)}'
    )
    return ("sh", "-c", script, "perfsuite", home)


def missing_suite(python: str) -> str:
    """Say that there is no suite: what follows 'the suite' in a message."""
    return f"is not there (no {python})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An installation of the suite, as it describes itself."""

    suite_version: str
    #: The version of the plans that it reads.
    plan_schema: int
    python_version: str
    machine: str
    #: The llama.cpp that would be measured; None with the reason in `engine_problem`.
    engine_build_id: str | None
    engine_problem: str | None


def read_installed(plain: Mapping[str, Any]) -> Installed:
    """Read an answer; one of another version of the suite, which has other fields, is a `DeviceError`."""
    try:
        return rebuilt(plain, Installed)
    except ValueError:
        raise DeviceError("the suite there is of another version; run 'perfsuite devices setup' again") from None


def last_answer(output: str) -> Mapping[str, Any] | None:
    """Return the last line that is JSON of an object; None where there is none."""
    for line in reversed(output.splitlines()):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        return told if isinstance(told, dict) else None
    return None


#: The oldest Python that runs the suite.
OLDEST_PYTHON = (3, 10)

#: What an installation takes on the disk: an environment, pip's downloads, and the compiling of llama.cpp.
#: *Source*: `du` of an installation on x86-64: 1.4 GB, of which 0.8 are Intel's OpenCL runtime; and as much again for
#: what is downloaded, compiled, and still in use meanwhile.
LEAST_FREE_BYTES, LEAST_FREE_WITH_RUNTIME_BYTES = 1_500_000_000, 2_500_000_000

#: What a device's Python is asked, before anything is installed.
PYTHON_QUESTION = """
import importlib.util, json, sys
has = {name: importlib.util.find_spec(name) is not None for name in ("venv", "ensurepip")}
print(json.dumps({"version": list(sys.version_info[:3]), "prefix": sys.prefix, **has}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A thing that is missing on a device."""

    what: str
    #: The command there that mends it, or what to do.
    mend: str
    #: Without it nothing can be installed; otherwise it is a remark.
    is_needed: bool = True

    @property
    def text(self) -> str:
        """Both, in one line."""
        return f"{self.what}: {self.mend}"


def read_python(output: str) -> Mapping[str, Any] | None:
    """Return what Python answered to `PYTHON_QUESTION`; None where that is no answer."""
    told = last_answer(output)
    return told if told is not None and {"version", "venv", "ensurepip"} <= told.keys() else None


def missing_things(
    readings: Readings, python: Mapping[str, Any] | None, *, command: str, is_offline: bool
) -> tuple[Missing, ...]:
    """List what is missing; `python` is what the interpreter called `command` answered, None where there is none."""
    is_termux = "com.termux" in (readings.text("prefix") or "")
    return (
        *_about_python(python, command, is_termux=is_termux),
        *_about_compilers(readings, is_termux=is_termux, is_offline=is_offline),
        *_about_room(readings),
    )


def _install(*, debian: str, termux: str, is_termux: bool) -> str:
    """Say how packages are installed: on Termux, or else on Debian and similar ones."""
    return f"pkg install {termux}" if is_termux else f"sudo apt-get install -y {debian}"


def _about_python(python: Mapping[str, Any] | None, command: str, *, is_termux: bool) -> Iterator[Missing]:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    install = _install(debian="python3 python3-venv", termux="python", is_termux=is_termux)
    if python is None:
        yield Missing(what=f"no Python called {command}", mend=f"{install}, or name another one with --python")
    elif tuple(python["version"][:2]) < OLDEST_PYTHON:
        version = ".".join(map(str, python["version"]))
        mend = f"install Python {oldest} or newer beside it, and name it with --python"
        yield Missing(what=f"{command} is Python {version}, {oldest} is needed", mend=mend)
    elif not (python["venv"] and python["ensurepip"]):
        version = ".".join(map(str, python["version"][:2]))
        yield Missing(
            what=f"{command} cannot make environments (no venv or ensurepip)",
            mend=_install(debian=f"python{version}-venv", termux="python", is_termux=is_termux),
        )


def _about_compilers(readings: Readings, *, is_termux: bool, is_offline: bool) -> Iterator[Missing]:
    names = ("cc", "gcc", "clang", "c++", "g++", "clang++", "cmake")
    has = {name for name in names if readings.text(f"command:{name}")}
    if not has & {"cc", "gcc", "clang"} or not has & {"c++", "g++", "clang++"}:
        mend = _install(debian="g++ libc6-dev", termux="clang", is_termux=is_termux)
        yield Missing(what="no C or C++ compiler (probes and recorder are compiled there)", mend=mend)
    if "cmake" not in has:
        yield Missing(
            what="no cmake (llama.cpp is compiled with it, unless a wheel is found; pip brings one where it can)",
            mend=_install(debian="cmake", termux="cmake ninja", is_termux=is_termux),
            is_needed=is_termux and not is_offline,
        )


def _about_room(readings: Readings) -> Iterator[Missing]:
    free_bytes, least_bytes = free_disk_bytes(readings), least_free_bytes(readings)
    if free_bytes is not None and free_bytes < least_bytes:
        gib = 2**30
        what = f"{free_bytes / gib:.1f} GiB free on the disk, an installation needs {least_bytes / gib:.1f} GiB"
        mend = "make room there, or name a folder on another disk as 'home' in [reach] of the profile"
        yield Missing(what=what, mend=mend)


def least_free_bytes(readings: Readings) -> int:
    """Return what an installation takes; on x86-64 it has Intel's OpenCL runtime."""
    is_x86 = readings.text("machine") == "x86_64"
    return LEAST_FREE_WITH_RUNTIME_BYTES if is_x86 else LEAST_FREE_BYTES


def free_disk_bytes(readings: Readings) -> int | None:
    """Return what is free on the disk that is installed on, as ``df -Pk`` told it."""
    fields = (readings.text("disk") or "").split()
    return int(fields[3]) * 1024 if len(fields) > 4 and fields[3].isdigit() else None
