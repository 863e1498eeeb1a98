"""Power as the battery tells it while it drains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.battery import read_battery
from perfsuite.device.stability.power_reading import NOTHING_READ, PowerReading, sensible_watts
from perfsuite.device.stability.small_files import read_line, read_number


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplyPower:
    """A battery: what it gives is what the device draws, as long as nothing else feeds it."""

    folder: Path
    covers: str = "the whole device, its screen included, while the battery drains"

    @property
    def name(self) -> str:
        """The battery."""
        return f"battery {self.folder.name}"

    def read(self) -> PowerReading:
        """Read the power, or current times voltage; drivers do not agree on the current's sign, so that it counts not.

        Nothing is read while the battery is charged or full.
        """
        if read_line(self.folder / "status") != "Discharging":
            return NOTHING_READ
        microwatts = read_number(self.folder / "power_now")
        if microwatts is not None:
            return PowerReading(watts=sensible_watts(abs(microwatts) / 1e6))
        microamperes, microvolts = (read_number(self.folder / each) for each in ("current_now", "voltage_now"))
        if microamperes is None or microvolts is None:
            return NOTHING_READ
        return PowerReading(watts=sensible_watts(abs(microamperes) * microvolts / 1e12))


def find_supply_power(root: Path) -> tuple[SupplyPower, ...]:
    """Return the device's battery, if it has one."""
    battery = read_battery(root)
    return () if battery is None else (SupplyPower(folder=battery.folder),)
