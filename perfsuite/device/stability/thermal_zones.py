"""Reads temperatures, and tells those that can be one from those that cannot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.small_files import entries, read_line, read_number

#: What a board that runs can be at. Sensors without power read -274000 or -40000, or 0; some drivers of batteries give
#: degrees where the kernel's unit is millidegrees, which reads below 1.
LEAST_CELSIUS, MOST_CELSIUS = 1.0, 150.0
#: Zones that hold a current, a voltage, a charge or a limit, for vendors' kernels use the class for these, too.
_NO_TEMPERATURE = re.compile(
    r"soc|socd|(?:.*[-_])?(?:ibat|vbat|vph|bcl)(?:[-_].*)?|.*(?:ocp_\w+|vdroop\d|smpl_gm|batoilo\d?|battery_cycle|-adc)"
)
#: Chips of hwmon that measure the processor of a PC, many of which have no thermal zone for it; the first sensor is the
#: package's. On boards such chips only mirror the zones.
_PROCESSOR_CHIPS = {"coretemp", "k10temp", "zenpower"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A place whose temperature is measured."""

    #: The zone's type, or the chip's name.
    name: str
    #: The file with millidegrees.
    path: Path

    def celsius(self) -> float | None:
        """Return the temperature now; None where it cannot be read, or cannot be one."""
        millidegrees = read_number(self.path)
        if millidegrees is None or not LEAST_CELSIUS <= millidegrees / 1000 <= MOST_CELSIUS:
            return None
        return millidegrees / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Temperatures:
    """One look at all zones that count."""

    #: (name, degrees) of the zones that read something sensible.
    read: tuple[tuple[str, float], ...]
    #: The names of the others.
    unread: tuple[str, ...]

    @property
    def hottest(self) -> tuple[str, float] | None:
        """The hottest zone with its temperature."""
        return max(self.read, key=lambda each: each[1], default=None)


def find_zones(root: Path, counted: Sequence[str] = ()) -> tuple[Zone, ...]:
    """Return the zones of the given types, and chips of hwmon of these names.

    Without types they are all that can be temperatures, with the chip of a PC's processor.
    """
    zones = _thermal_zones(root)
    chips = _chip_zones(root)
    if counted:
        return tuple(zone for zone in (*zones, *chips) if zone.name in counted)
    packages = (zone for zone in chips if zone.name in _PROCESSOR_CHIPS and zone.path.name == "temp1_input")
    return (*(zone for zone in zones if not _NO_TEMPERATURE.fullmatch(zone.name)), *packages)


def read_temperatures(zones: Sequence[Zone]) -> Temperatures:
    """Read every zone once."""
    found = [(zone.name, zone.celsius()) for zone in zones]
    return Temperatures(
        read=tuple((name, celsius) for name, celsius in found if celsius is not None),
        unread=tuple(name for name, celsius in found if celsius is None),
    )


def _thermal_zones(root: Path) -> tuple[Zone, ...]:
    folders = entries(root / "sys/class/thermal", "thermal_zone*")
    return tuple(Zone(name=read_line(each / "type") or each.name, path=each / "temp") for each in folders)


def _chip_zones(root: Path) -> tuple[Zone, ...]:
    return tuple(
        Zone(name=read_line(chip / "name") or chip.name, path=path)
        for chip in entries(root / "sys/class/hwmon", "hwmon*")
        for path in entries(chip, "temp*_input")
    )
