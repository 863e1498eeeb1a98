"""What a device is: its board, its system, its memory, and which shipped profile is that of its kind."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfsuite.device.probe.readings import Readings

#: By shipped profile: what a name of the board must hold. The names are those of the device tree ("compatible" of the
#: Linux kernel's own board files), or of Android's properties.
_KINDS = {
    "rubikpi": r"rubik-?pi|qcs6490-thundercomm",
    "orangepi5": r"orangepi-5(?![-\w])|Orange Pi 5(?!\w| [A-Z])",
    "raspberrypi5": r"raspberrypi,5-model-b|Raspberry Pi 5\b",
    "pixel8pro": r"Pixel 8 Pro\b",
    "jetson-orin-nano": r"p3768-0000\+p3767-000[345]|Orin Nano\b",
}

#: Sizes in which memory is sold; what the kernel keeps for itself is less than a sixth of it.
_SOLD_GIB = (1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_LEAST_SHARE = 5 / 6

_GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A value and where it was read."""

    value: str
    source: str


def board_name(readings: Readings) -> Told | None:
    """Return the board's own name: of the device tree, of Android, of a PC's firmware, or of its processor."""
    if (model := readings.text("/proc/device-tree/model")) is not None:
        return Told(value=model, source="/proc/device-tree/model")
    if (model := readings.text("ro.product.model")) is not None:
        maker = readings.text("ro.product.manufacturer")
        return Told(value=" ".join(filter(None, (maker, model))), source="getprop ro.product.model")
    for line in readings.all("/proc/cpuinfo"):
        name, _, text = line.partition(":")
        if name.strip() == "model name" and text.strip():
            return Told(value=text.strip(), source="/proc/cpuinfo")
    return None


def system_name(readings: Readings) -> str:
    """Return the operating system and the kernel, as far as they are told."""
    android = readings.text("ro.build.version.release")
    named = next((line for line in readings.all("/etc/os-release") if line.startswith("PRETTY_NAME=")), "")
    system = f"Android {android}" if android else named.partition("=")[2].strip('"')
    parts = (system, readings.text("kernel"), readings.text("machine"))
    return ", ".join(filter(None, parts)) or "unknown"


def shipped_kind(readings: Readings) -> Told | None:
    """Return the shipped profile of boards of this kind, with the name that tells; None where there is none."""
    board = board_name(readings)
    android = filter(None, (readings.text(name) for name in ("ro.soc.model", "ro.board.platform")))
    names = (*((board.value,) if board else ()), *readings.all("/proc/device-tree/compatible"), *android)
    for kind, pattern in _KINDS.items():
        for name in names:
            if re.search(pattern, name, re.IGNORECASE):
                return Told(value=kind, source=name)
    return None


def memory_bytes(readings: Readings) -> int | None:
    """Return the memory that the kernel has for itself and all programs."""
    return meminfo_bytes(readings, "MemTotal")


def meminfo_bytes(readings: Readings, name: str) -> int | None:
    """Return a line of /proc/meminfo in bytes."""
    for line in readings.all("/proc/meminfo"):
        found = re.fullmatch(rf"{re.escape(name)}:\s+(\d+) kB\s*", line)
        if found is not None:
            return int(found[1]) * 1024
    return None


def sold_bytes(n_bytes: int) -> int:
    """Return the memory as it is sold: the next size that is, where what is there is not far below it."""
    sizes = (each * _GIB for each in _SOLD_GIB)
    return next((each for each in sizes if n_bytes <= each and n_bytes >= _LEAST_SHARE * each), n_bytes)
