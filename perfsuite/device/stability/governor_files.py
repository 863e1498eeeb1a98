"""Finds the files with which the governors of the processors and of the GPU are set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.small_files import entries, is_there, read_line

_POLICIES = "sys/devices/system/cpu/cpufreq"
#: A GPU's frequency control: that of the kernel's own class first, then the drivers' own places.
_GPU_FOLDERS = (
    ("sys/class/devfreq", "*"),
    ("sys/class/kgsl", "kgsl-3d0/devfreq"),
    ("sys/class/misc", "mali*/device"),
    ("sys/devices/platform", "*.mali"),
)
#: Names end so: 'fb000000.gpu', '1f000000.mali', '3d00000.qcom,kgsl-3d0', '17000000.ga10b'. Buses to a GPU's memory
#: ('kgsl-busmon', 'soc:qcom,gpubw') do not.
_GPU_NAME = re.compile(r"(?:.*[.,:])?(?:gpu|mali|mali\d|kgsl-3d\d|g[kmpva]\d\d[ab])")
#: Drivers of GPUs: mainline, Arm's, Qualcomm's, Nvidia's.
_GPU_DRIVERS = {"panfrost", "panthor", "lima", "mali", "adreno", "kgsl-3d", "nvgpu", "gk20a"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorFile:
    """One file that holds the name of a governor."""

    path: Path
    #: What it governs, in messages: ``policy4``, ``fb000000.gpu``.
    name: str
    #: The governors that may be set; () where the kernel does not say.
    offered: tuple[str, ...]


def processor_governors(root: Path) -> tuple[GovernorFile, ...]:
    """Return the file of every group of processors that share a clock."""
    folders = entries(root / _POLICIES, "policy*")
    found = (_governor_file(each, "scaling_governor", "scaling_available_governors") for each in folders)
    return tuple(each for each in found if each is not None)


def gpu_governors(root: Path) -> tuple[GovernorFile, ...]:
    """Return the file of every GPU with a frequency control, each once however many paths lead to it."""
    found: dict[Path, GovernorFile] = {}
    for place, pattern in _GPU_FOLDERS:
        for folder in entries(root / place, pattern):
            each = _governor_file(folder, "governor", "available_governors") if _is_gpu(folder) else None
            if each is not None and _real(each.path) not in found:
                found[_real(each.path)] = each
    return tuple(found.values())


def _is_gpu(folder: Path) -> bool:
    """Whether a folder is a GPU's, by its name or by the driver that made it."""
    if folder.parent.name != "devfreq":
        return True
    return bool(_GPU_NAME.fullmatch(folder.name)) or _real(folder / "device" / "driver").name in _GPU_DRIVERS


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _governor_file(folder: Path, chosen: str, available: str) -> GovernorFile | None:
    if not is_there(folder / chosen):
        return None
    name = folder.parent.name if folder.name in {"devfreq", "device"} else folder.name
    return GovernorFile(path=folder / chosen, name=name, offered=tuple((read_line(folder / available) or "").split()))
