"""Which helper program the eBPF recorder uses, and the one thing that is missing where it cannot be used.

The helper is a program of its own because it needs privileges that the suite has no use for: CAP_BPF and CAP_PERFMON.
One that is installed has them as file capabilities and lies where only root can write; root may do without and use one
out of the cache.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from perfsuite.errors import MeasurementError, NativeBuildError, PerfsuiteError
from perfsuite.measure.ebpf_build import HELPER_NAME, KERNEL_TYPES, build_helper
from perfsuite.measure.trusted_place import others_can_write
from perfsuite.measure.uprobes import PMU_TYPE

#: Where the helper is installed.
HELPER_FOLDER = Path("/usr/local/libexec/perfsuite")

#: ``PS_BPF_VERSION`` of native/include/perfsuite/bpf_log.h.
PROTOCOL_VERSION = 1

INSTALL_COMMAND = "sudo perfsuite trace install-helper"

#: What the kernel calls the first namespace of processes: ``PROC_PID_INIT_INO`` of linux/proc_ns.h.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_LIMIT_S = 60


def find_helper(cache_dir: Path, *, folder: Path = HELPER_FOLDER) -> Path:
    """Return the helper that is installed, or for root without one that can be used the one that it builds.

    Raises `MeasurementError` where there is none, naming the one thing that is missing; `NativeBuildError` where
    root's own does not build.
    """
    path = folder / HELPER_NAME
    if (problem := _installed_problem(path)) is None:
        return path
    if os.geteuid() == 0:
        return _own_helper(cache_dir)
    raise MeasurementError(f"{problem}; root installs it: {INSTALL_COMMAND}")


def _own_helper(cache_dir: Path) -> Path:
    """Build root's helper, unless somebody else could put another in its place, as under a sudo that keeps HOME."""
    path = build_helper(cache_dir)
    if place := others_can_write(path.resolve()):
        raise MeasurementError(
            f"{place}: others than root can write there, and root would run what they put there; "
            f"install the helper: {INSTALL_COMMAND}"
        )
    return path


def ebpf_obstacle(cache_dir: Path, *, folder: Path = HELPER_FOLDER) -> str | None:
    """Return the one thing that keeps the eBPF recorder from working here, or None where a probe was set and hit."""
    try:
        return _machine_obstacle() or check_helper(find_helper(cache_dir, folder=folder))
    except PerfsuiteError as error:
        return str(error)


def check_helper(helper: Path) -> str | None:
    """Have a helper load its programs and set a probe on itself; return why that fails, or None."""
    try:
        done = _run(helper, "--check")
    except NativeBuildError as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return lines[0].removeprefix("error: ") if lines else f"{helper}: ended with {done.returncode}"


def _machine_obstacle() -> str | None:
    if not sys.platform.startswith("linux"):
        return f"not Linux but {sys.platform}; eBPF is Linux's"
    if not KERNEL_TYPES.exists():
        return f"no BTF: {KERNEL_TYPES} is not there; the kernel needs CONFIG_DEBUG_INFO_BTF"
    if not PMU_TYPE.exists():
        return f"no uprobe PMU: {PMU_TYPE} is not there; the kernel needs CONFIG_UPROBE_EVENTS"
    if os.readlink("/proc/self/ns/pid") != _FIRST_PID_NAMESPACE:
        return "in a container: not in the first namespace of processes; run on the host"
    return None


def _installed_problem(path: Path) -> str | None:
    try:
        status = path.lstat()
    except OSError:
        return f"no helper: {path} is not there"
    if not stat.S_ISREG(status.st_mode) or not _is_roots_own(status):
        return f"{path}: is not a file that belongs to root and that only root can write"
    try:
        said = _run(path, "--version").stdout.split()
    except NativeBuildError as error:
        return str(error)
    if said != [HELPER_NAME, str(PROTOCOL_VERSION)]:
        return f"{path}: says {' '.join(said)!r}, {HELPER_NAME} {PROTOCOL_VERSION} is needed"
    return None


def _is_roots_own(status: os.stat_result) -> bool:
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _run(helper: Path, option: str) -> subprocess.CompletedProcess[str]:
    command = [str(helper), option]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise NativeBuildError(f"{helper}: {option} takes more than {_LIMIT_S} s") from None
    except OSError as error:
        raise NativeBuildError(f"{helper}: does not run ({error.strerror})") from None
