"""What may explain why a run took longer than another and does not make them incomparable."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from perfsuite.device.stability.power_sensors import find_power_sensors, read_battery
from perfsuite.device.stability.small_files import read_line
from perfsuite.device.stability.thermal_zones import find_zones, read_temperatures
from perfsuite.device.stability.throttling import cpuinfo_mhz, find_policies, find_throttling, mean_mhz, together


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
