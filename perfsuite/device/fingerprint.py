"""What must be equal for two measurements to be comparable, in buckets that do not change by themselves."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import psutil

#: Fields in the order in which differences are told.
Fingerprint = Mapping[str, str]


def host_fingerprint(root: Path = Path("/")) -> dict[str, str]:
    """Describe this machine: processor, cores, memory to the power of two, governor."""
    return {
        "soc": _processor_name(root),
        "n_cores": str(psutil.cpu_count(logical=True)),
        "memory_gib": str(_memory_bucket_gib(psutil.virtual_memory().total)),
        "governor": governor(root),
        "machine": platform.machine(),
    }


def governor(root: Path = Path("/")) -> str:
    """Return the frequency governor of the first core, ``none`` where the kernel offers no control."""
    try:
        return (root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
    except OSError:
        return "none"


def differences(old: Fingerprint, new: Fingerprint) -> tuple[str, ...]:
    """Name every field that differs, with both values."""
    fields = dict.fromkeys((*old, *new))
    return tuple(
        f"{field} '{old.get(field, '-')}', now '{new.get(field, '-')}'"
        for field in fields
        if old.get(field) != new.get(field)
    )


def _processor_name(root: Path) -> str:
    """Read the model's name from the device tree (boards) or from /proc/cpuinfo (PCs)."""
    try:
        return (root / "proc/device-tree/model").read_text().strip("\0\n ")
    except OSError:
        pass
    try:
        lines = (root / "proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    trimmed = {key.strip(): value.strip() for key, value in fields.items()}
    names = [trimmed.get("model name", "unknown")]
    names += [f"{key} {trimmed[key]}" for key in ("cpu family", "model") if key in trimmed]
    return ", ".join(names)


def _memory_bucket_gib(total_bytes: int) -> int:
    """Round up to a power of two GiB, so that what the kernel reserves makes no difference."""
    bucket = 1
    while bucket * 2**30 < total_bytes:
        bucket *= 2
    return bucket
