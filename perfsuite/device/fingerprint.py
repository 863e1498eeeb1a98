"""The fingerprint of a machine, and the state of its clocks."""

from __future__ import annotations

import platform
from pathlib import Path

from perfsuite.device.control_groups import limits
from perfsuite.device.machine import Machine
from perfsuite.device.stability.small_files import read_line, read_number
from perfsuite.device.stability.throttling import find_policies


def host_fingerprint(root: Path = Path("/"), machine: Machine | None = None) -> dict[str, str]:
    """Describe a machine, this one by default: processor, cores, memory to the power of two, governor, limits."""
    machine = machine or Machine.here()
    return {
        "soc": _processor_name(root),
        "n_cores": str(machine.n_processors),
        "memory_gib": str(_memory_bucket_gib(machine.memory_bytes)),
        "governor": governor(root),
        "machine": machine.architecture,
        **limits(root),
    }


def governor(root: Path = Path("/")) -> str:
    """Return the frequency governors of the processors that are on, ``none`` where the kernel offers no control."""
    found = {read_line(each.folder / "scaling_governor") or "not known" for each in find_policies(root)}
    return ", ".join(sorted(found)) or "none"


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


def clock_conditions(root: Path = Path("/")) -> dict[str, str]:
    """Return the ``governor`` and whether ``clocks`` are ``locked``, ``not locked`` or ``not known``.

    Clocks are locked where every policy's lowest and highest rate are one. A machine without control of its clocks,
    which most virtual ones are, does not say.
    """
    policies = find_policies(root)
    known = [tuple(read_number(each.folder / f"scaling_{end}_freq") for end in ("min", "max")) for each in policies]
    if not known or any(None in each for each in known):
        state = "not known"
    else:
        state = "locked" if all(lowest == highest for lowest, highest in known) else "not locked"
    return {"governor": governor(root), "clocks": state}
