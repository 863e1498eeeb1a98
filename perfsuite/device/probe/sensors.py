"""Heat, power, the battery and the GPU's clock of a device, as its readings tell of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfsuite.device.probe.readings import Readings

#: Readings beyond are none of what computes: sensors that are off read so, and zones that are flags or counters.
_LEAST_CELSIUS, _MOST_CELSIUS = 1.0, 150.0

#: Types of zones that are near what computes where they have no trips; and of chargers, batteries, modems and skins.
_COMPUTING = re.compile(r"cpu|gpu|g3d|soc|big|little|^mid$|core|package|x86_pkg|center|tj|acpitz", re.IGNORECASE)
_NOT_COMPUTING = re.compile(r"battery|charg|skin|modem|wlan|wifi|usb|camera|pmic|pm\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A thermal zone."""

    path: str
    type: str
    celsius: float | None
    #: From which temperature on the kernel slows what is in it down; None where it does not say.
    slows_at_celsius: float | None

    @property
    def is_computing(self) -> bool:
        """Whether it is near what computes: the kernel slows down by it, or its name says so."""
        is_near = self.slows_at_celsius is not None or _COMPUTING.search(self.type)
        return bool(is_near) and not _NOT_COMPUTING.search(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Battery:
    """A battery that feeds the device."""

    source: str
    charge_ratio: float | None
    #: Whether it is not being drained.
    is_fed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuClock:
    """The control of a GPU's clock."""

    path: str
    name: str
    governor: str | None
    governors: tuple[str, ...]
    is_settable: bool


def zones(readings: Readings) -> tuple[Zone, ...]:
    """Return the thermal zones, in the order of their numbers."""
    return tuple(_zone(readings, match[1]) for match in readings.names(r"(/sys/class/thermal/thermal_zone\d+)/type"))


def _zone(readings: Readings, path: str) -> Zone:
    trips = []
    for match in readings.names(rf"{re.escape(path)}/trip_point_(\d+)_type"):
        if readings.text(match[0]) in ("passive", "hot"):
            trips.append(_celsius(readings.count(f"{path}/trip_point_{match[1]}_temp")))
    told = [trip for trip in trips if trip is not None]
    celsius = _celsius(readings.count(f"{path}/temp"))
    kind = readings.text(f"{path}/type") or ""
    return Zone(path=path, type=kind, celsius=celsius, slows_at_celsius=min(told, default=None))


def _celsius(millidegrees: int | None) -> float | None:
    if millidegrees is None or not _LEAST_CELSIUS <= millidegrees / 1000.0 <= _MOST_CELSIUS:
        return None
    return millidegrees / 1000.0


def power_sensors(readings: Readings) -> tuple[str, ...]:
    """Return the files in which power can be read, or voltage and current of one rail, or energy."""
    hwmon = r"/sys/class/hwmon/hwmon\d+"
    direct = [match[0] for match in readings.names(rf"{hwmon}/power\d+_(input|average)")]
    rails = [
        match[0]
        for match in readings.names(rf"({hwmon})/curr(\d+)_input")
        if f"{match[1]}/in{match[2]}_input" in readings.lines
    ]
    energy = [match[0] for match in readings.names(r"/sys/class/powercap/[^/]+/energy_uj")]
    return (*direct, *rails, *energy)


def battery(readings: Readings) -> Battery | None:
    """Return the battery that feeds the device; None where there is none, or none can be seen."""
    for match in readings.names(r"(/sys/class/power_supply/[^/]+)/type"):
        path = match[1]
        if readings.text(match[0]) == "Battery" and readings.text(f"{path}/scope") != "Device":
            status = readings.text(f"{path}/status")
            is_fed = None if status in (None, "Unknown") else status != "Discharging"
            return Battery(source=path, charge_ratio=_ratio(readings.count(f"{path}/capacity")), is_fed=is_fed)
    return _dumped_battery(readings)


def _dumped_battery(readings: Readings) -> Battery | None:
    """Read what Android's own service says, where it keeps the files to itself."""
    told = dict(part for line in readings.all("battery") if len(part := line.strip().split(": ", 1)) == 2)
    if "level" not in told:
        return None
    level = int(told["level"]) if told["level"].isdigit() else None
    is_fed = any(value == "true" for name, value in told.items() if name.endswith(" powered"))
    return Battery(source="dumpsys battery", charge_ratio=_ratio(level), is_fed=is_fed)


def _ratio(percent: int | None) -> float | None:
    return percent / 100.0 if percent is not None and 0 <= percent <= 100 else None


def gpu_clocks(readings: Readings) -> tuple[GpuClock, ...]:
    """Return the controls of GPUs' clocks, told from those of memory and buses by their names."""
    found = []
    for match in readings.names(r"(/sys/class/devfreq/([^/]+))/governor"):
        path, name = match[1], match[2]
        if re.search(r"gpu|kgsl|mali", f"{name} {readings.text(f'{path}/name') or ''}", re.IGNORECASE):
            governors = tuple((readings.text(f"{path}/available_governors") or "").split())
            is_settable = f"{path}/governor" in readings.all("writable")
            governor = readings.text(match[0])
            found.append(
                GpuClock(path=path, name=name, governor=governor, governors=governors, is_settable=is_settable)
            )
    return tuple(found)
