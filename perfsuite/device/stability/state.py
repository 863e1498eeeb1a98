"""The state of a device at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.battery import read_battery
from perfsuite.device.stability.clock_rates import cpuinfo_mhz, find_policies, mean_mhz, rates_khz
from perfsuite.device.stability.power_sensors import find_power_sensors
from perfsuite.device.stability.small_files import read_line
from perfsuite.device.stability.thermal_zones import find_zones, read_temperatures
from perfsuite.device.stability.throttling import find_throttling


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """What a device says of itself; None is 'not measured'."""

    #: Of the last minute.
    load_average: float | None
    #: By group of processors that share a clock.
    rates_khz: tuple[tuple[str, int], ...]
    #: The mean over the processors used.
    cpu_mhz: float | None
    #: Of the hottest zone that counts, and which that is.
    temperature_celsius: float | None
    hottest_zone: str | None
    is_throttled: bool | None
    #: What is held back, in words.
    throttled_by: tuple[str, ...]
    #: How often it has throttled since its start, on x86.
    n_throttle_events: int | None
    battery_ratio: float | None
    is_charging: bool | None
    power_watts: float | None
    available_bytes: int | None


def read_state(
    root: Path = Path("/"), *, zones: Sequence[str] = (), processors: Sequence[int] = (), with_power: bool = True
) -> DeviceState:
    """Read the state now; `zones` are types of thermal zones that count, () counts all that can be temperatures.

    Nothing raises: what cannot be read, or cannot be true, is None. The power is that of the sensor that covers most;
    a counter of energy has none in a single look.
    """
    policies = find_policies(root, processors)
    rates = rates_khz(policies)
    hottest = read_temperatures(find_zones(root, zones)).hottest
    throttling = find_throttling(root).read()
    battery = read_battery(root)
    sensors = find_power_sensors(root) if with_power else ()
    return DeviceState(
        load_average=_load_average(root),
        rates_khz=rates,
        cpu_mhz=mean_mhz(policies, rates, processors) or cpuinfo_mhz(root),
        temperature_celsius=hottest[1] if hottest else None,
        hottest_zone=hottest[0] if hottest else None,
        is_throttled=throttling.is_throttled,
        throttled_by=throttling.reasons or (),
        n_throttle_events=throttling.n_events,
        battery_ratio=battery.charge_ratio if battery else None,
        is_charging=battery.is_charging if battery else None,
        power_watts=sensors[0].read().watts if sensors else None,
        available_bytes=_available_bytes(root),
    )


def _load_average(root: Path) -> float | None:
    first = (read_line(root / "proc/loadavg") or "").partition(" ")[0]
    try:
        load = float(first)
    except ValueError:
        return None
    return round(load, 3) if 0 <= load < 1e6 else None


def _available_bytes(root: Path) -> int | None:
    """Return what programs may still take, from a line ``MemAvailable:  123 kB``."""
    for line in (read_line(root / "proc/meminfo") or "").splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "MemAvailable:" and words[1].isascii() and words[1].isdecimal():
            return int(words[1][:18]) * 1024
    return None
