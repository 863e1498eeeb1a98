"""Finds what measures a device's power."""

from __future__ import annotations

from pathlib import Path

from perfsuite.device.stability.hwmon_power import find_hwmon_power
from perfsuite.device.stability.package_energy import find_package_energy
from perfsuite.device.stability.power_reading import PowerSensor
from perfsuite.device.stability.rails_power import find_rails_power
from perfsuite.device.stability.supply_power import find_supply_power


def find_power_sensors(root: Path) -> tuple[PowerSensor, ...]:
    """Return all sensors that read something now, the one that covers most of the device first.

    The order: the input of the whole board, the battery that drains, the rails of a Raspberry Pi's power chip, the
    counters of x86 packages, then what measures a part.
    """
    channels = find_hwmon_power(root)
    found: tuple[PowerSensor, ...] = (
        *(each for each in channels if each.is_whole),
        *find_supply_power(root),
        *find_rails_power(root),
        *find_package_energy(root),
        *(each for each in channels if not each.is_whole),
    )
    return tuple(sensor for sensor in found if sensor.read().is_known)
