"""The processors of a device in clusters, as its readings tell of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.device.probe.readings import Readings
from perfsuite.device.stability.small_files import processor_list

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
    """Return the operating system and the kernel, as far as they are reported."""
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


_CPUS = "/sys/devices/system/cpu"

#: Processors below these shares of the best are small ones: of its capacity, or, where that is not told, of its clock.
#: Cortex-A78 beside A78 at a higher clock has 0.89 of both, A55 beside A76 a quarter of the capacity and 0.75 of the
#: clock; a middle cluster of Android's three has about 0.8.
_BIG_CAPACITY_RATIO, _BIG_CLOCK_RATIO = 0.6, 0.78


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Processors that share a clock; what is not reported is None."""

    #: The folder of its policy; None where the kernel offers no control of clocks.
    path: str | None
    processors: tuple[int, ...]
    #: Of the fastest processor there is 1024; *Source*: Documentation/scheduler/sched-capacity.rst of Linux.
    capacity: int | None
    most_khz: int | None = None
    #: The bounds that are set.
    lower_khz: int | None = None
    upper_khz: int | None = None
    now_khz: int | None = None
    governor: str | None = None
    governors: tuple[str, ...] = ()
    #: Whether the user that the device is reached as may set it.
    is_settable: bool = False


def clusters(readings: Readings) -> tuple[Cluster, ...]:
    """Return the processors that are on: by policy, and by their kind where there is no control of their clock."""
    on = processor_list(readings.text(f"{_CPUS}/online") or "")
    policies = [match[1] for match in readings.names(rf"({_CPUS}/cpufreq/policy\d+)/related_cpus")]
    found = [each for path in policies if (each := _cluster(readings, path, on)).processors]
    alike: dict[object, list[int]] = {}
    for cpu in set(on).difference(*(each.processors for each in found)):
        alike.setdefault((_capacity(readings, (cpu,)), _part(readings, cpu)), []).append(cpu)
    kinds = (tuple(sorted(each)) for each in alike.values())
    found += (Cluster(path=None, processors=each, capacity=_capacity(readings, each)) for each in kinds)
    return tuple(sorted(found, key=lambda each: each.processors))


def _part(readings: Readings, cpu: int) -> str | None:
    """Return which design of Arm's a processor is; one that is off is not listed."""
    lines = [tuple(map(str.strip, line.split(":", 1))) for line in readings.all("/proc/cpuinfo") if ":" in line]
    own = lines[lines.index(("processor", str(cpu))) :] if ("processor", str(cpu)) in lines else []
    return next((value for name, value in own if name == "CPU part"), None)


def big_processors(found: Sequence[Cluster]) -> tuple[int, ...]:
    """Return the processors that are not small ones; () where all are alike, or nobody says which are which."""
    speeds = _speeds(found)
    if speeds is None:
        return ()
    values, least_ratio = speeds
    big = [each for each, speed in zip(found, values, strict=True) if speed >= least_ratio * max(values)]
    return tuple(sorted(cpu for each in big for cpu in each.processors)) if len(big) < len(found) else ()


def _speeds(found: Sequence[Cluster]) -> tuple[list[int], float] | None:
    capacities = [each.capacity for each in found if each.capacity is not None]
    if found and len(capacities) == len(found):
        return capacities, _BIG_CAPACITY_RATIO
    clocks = [each.most_khz for each in found if each.most_khz is not None]
    return (clocks, _BIG_CLOCK_RATIO) if found and len(clocks) == len(found) else None


def _cluster(readings: Readings, path: str, on: Sequence[int]) -> Cluster:
    related = processor_list(readings.text(f"{path}/related_cpus") or "")
    processors = tuple(each for each in related if not on or each in on)
    return Cluster(
        path=path,
        processors=processors,
        capacity=_capacity(readings, processors),
        most_khz=readings.count(f"{path}/cpuinfo_max_freq"),
        lower_khz=readings.count(f"{path}/scaling_min_freq"),
        upper_khz=readings.count(f"{path}/scaling_max_freq"),
        now_khz=readings.count(f"{path}/scaling_cur_freq"),
        governor=readings.text(f"{path}/scaling_governor"),
        governors=tuple((readings.text(f"{path}/scaling_available_governors") or "").split()),
        is_settable=f"{path}/scaling_governor" in readings.all("writable"),
    )


def _capacity(readings: Readings, processors: Sequence[int]) -> int | None:
    return readings.count(f"{_CPUS}/cpu{processors[0]}/cpu_capacity") if processors else None
