"""What of a GPU's memory one process holds, as the driver tells it.

The kernel's DRM drivers tell it for each open device in ``/proc/PID/fdinfo``; NVIDIA's own driver tells it through
``nvidia-smi``.

*Source*: ``Documentation/gpu/drm-usage-stats.rst`` of Linux; ``nvidia-smi --help-query-compute-apps``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC_ROOT = Path("/proc")
_NVIDIA_SMI = "nvidia-smi"
_LIMIT_S = 10.0
_MIB = 1024 * 1024
_UNITS = {"": 1, "KiB": 1024, "MiB": _MIB}

#: Regions of a device's own memory, as drivers name them: ``vram`` and ``vram0`` (amdgpu, xe), ``local0`` (i915).
_DEVICE_REGION = re.compile(r"(?:vram|local|lmem)\d*")
#: Keys that tell a region's use, the first that a driver has: ``drm-memory-`` is the old name of resident memory.
_KINDS = ("drm-resident-", "drm-memory-", "drm-total-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vram:
    """Bytes of GPU memory that a process holds, or why they are not known."""

    n_bytes: int | None
    missing: str = ""


def process_vram(pid: int, *, proc: Path = _PROC_ROOT, nvidia_smi: str = _NVIDIA_SMI) -> Vram:
    """Ask the kernel's drivers, then NVIDIA's, what a process holds."""
    drm = drm_vram(pid, proc=proc)
    if drm.n_bytes is not None:
        return drm
    nvidia = nvidia_vram(pid, nvidia_smi=nvidia_smi)
    return nvidia if nvidia.n_bytes is not None else Vram(n_bytes=None, missing=f"{drm.missing}; {nvidia.missing}")


def drm_vram(pid: int, *, proc: Path = _PROC_ROOT) -> Vram:
    """Sum the device memory of a process's DRM clients, each once however many descriptors it has."""
    folder = proc / str(pid) / "fdinfo"
    try:
        descriptors = sorted(folder.iterdir())
    except OSError as error:
        return Vram(n_bytes=None, missing=f"{folder}: {error.strerror}")
    clients = {
        (info.get("drm-pdev", info["drm-driver"]), info.get("drm-client-id", path.name)): info
        for path in descriptors
        if "drm-driver" in (info := _fields(path))
    }
    held = [size for info in clients.values() if (size := _device_bytes(info)) is not None]
    if not clients:
        return Vram(n_bytes=None, missing="the process has no DRM device open")
    if not held:
        drivers = ", ".join(sorted({info["drm-driver"] for info in clients.values()}))
        return Vram(n_bytes=None, missing=f"the driver tells no device memory of a process ({drivers})")
    return Vram(n_bytes=sum(held))


def nvidia_vram(pid: int, *, nvidia_smi: str = _NVIDIA_SMI) -> Vram:
    """Ask nvidia-smi, and sum what a process holds on all GPUs."""
    program = shutil.which(nvidia_smi)
    if program is None:
        return Vram(n_bytes=None, missing="nvidia-smi is not there")
    query = ["--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        asked = subprocess.run([program, *query], capture_output=True, text=True, timeout=_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Vram(n_bytes=None, missing=f"nvidia-smi gave no answer ({type(error).__name__})")
    if asked.returncode:
        return Vram(n_bytes=None, missing=f"nvidia-smi returned {asked.returncode}")
    held = [used for each, used in _applications(asked.stdout) if each == pid]
    if not held:
        return Vram(n_bytes=None, missing="nvidia-smi does not list the process")
    told = [used for used in held if used is not None]
    return Vram(n_bytes=sum(told)) if told else Vram(n_bytes=None, missing="nvidia-smi tells no memory of the process")


def _applications(answer: str) -> Iterator[tuple[int, int | None]]:
    """Yield process id and bytes of each line; None for what the driver does not tell, such as ``[N/A]``."""
    for line in answer.splitlines():
        pid, _, used = (part.strip() for part in line.partition(","))
        if pid.isdigit():
            yield int(pid), int(used) * _MIB if used.isdigit() else None


def _fields(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:  # the descriptor was closed meanwhile
        return {}
    return {name.strip(): value.strip() for name, mark, value in (line.partition(":") for line in lines) if mark}


def _device_bytes(info: Mapping[str, str]) -> int | None:
    """Sum a client's regions of device memory, each by the first kind that the driver tells."""
    regions: dict[str, int] = {}
    for kind in _KINDS:
        for name, value in info.items():
            region = name.removeprefix(kind)
            size = _bytes(value)
            if name.startswith(kind) and _DEVICE_REGION.fullmatch(region) and size is not None:
                regions.setdefault(region, size)
    return sum(regions.values()) if regions else None


def _bytes(value: str) -> int | None:
    number, _, unit = value.partition(" ")
    return int(number) * _UNITS[unit] if number.isdigit() and unit in _UNITS else None
