"""The fingerprint of a machine, and the state of its clocks."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from perfsuite.device.control_groups import limits
from perfsuite.device.machine import Machine
from perfsuite.device.stability.power_sensors import find_power_sensors, read_battery
from perfsuite.device.stability.small_files import read_line, read_number
from perfsuite.device.stability.thermal_zones import find_zones, read_temperatures
from perfsuite.device.stability.throttling import cpuinfo_mhz, find_policies, find_throttling, mean_mhz, together


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


def device_covariates(
    root: Path = Path("/"), *, zones: Sequence[str] = (), processors: Sequence[int] = ()
) -> dict[str, float | None]:
    """Return load, clock, temperature, ``throttled`` (1 or 0), battery and power as they are now; None: not measured.

    `zones` are types of thermal zones that count, () counts all that can be temperatures. Nothing raises: what cannot
    be read, or cannot be true, is None. The power is that of the sensor that covers most; a counter of energy has none
    in a single look.
    """
    hottest = read_temperatures(find_zones(root, zones)).hottest
    is_throttled = together(each.read() for each in find_throttling(root)).is_throttled
    battery = read_battery(root)
    sensors = find_power_sensors(root)
    rates = [(policy, policy.khz()) for policy in find_policies(root, processors)]
    return {
        "load_average": _load_average(root),
        "cpu_mhz": mean_mhz(rates, processors) or cpuinfo_mhz(root),
        "temperature_celsius": hottest[1] if hottest else None,
        "throttled": None if is_throttled is None else float(is_throttled),
        "battery_ratio": battery.charge_ratio if battery else None,
        "power_watts": sensors[0].read().watts if sensors else None,
    }


def _load_average(root: Path) -> float | None:
    """Return the load of the last minute."""
    with suppress(ValueError):
        load = float((read_line(root / "proc/loadavg") or "").partition(" ")[0])
        return round(load, 3) if 0 <= load < 1e6 else None
    return None
