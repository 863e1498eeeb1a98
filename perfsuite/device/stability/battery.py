"""The battery: its charge, and whether it is charged or drained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.conditions import Conditions
from perfsuite.device.stability.small_files import entries, read_line, read_number

#: What a battery that is not drained says of itself.
_CHARGING = ("Charging", "Full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Battery:
    """A battery that the device runs from."""

    folder: Path
    #: None where the charge is not told, or is none.
    charge_ratio: float | None
    #: As the kernel has it: Charging, Discharging, Not charging, Full, Unknown.
    status: str | None

    @property
    def is_charging(self) -> bool | None:
        """Whether it gains charge or is full."""
        return None if self.status is None else self.status in _CHARGING


def read_battery(root: Path) -> Battery | None:
    """Return the device's own battery as it is now, not those of a mouse or a headset; None where there is none."""
    for folder in entries(root / "sys/class/power_supply", "*"):
        is_own = read_line(folder / "type") == "Battery" and read_line(folder / "scope") != "Device"
        if is_own and read_number(folder / "present") != 0:
            percent = read_number(folder / "capacity")
            ratio = percent / 100 if percent is not None and 0 <= percent <= 100 else None
            return Battery(folder=folder, charge_ratio=ratio, status=read_line(folder / "status"))
    return None


def check_battery(conditions: Conditions, root: Path) -> tuple[str | None, str | None]:
    """Return a note, and the problem if the battery is not charged and holds less than is asked for."""
    least = conditions.least_battery_ratio
    battery = read_battery(root) if least is not None else None
    if least is None or (battery is not None and battery.is_charging):
        return None, None
    if battery is None or battery.charge_ratio is None:
        return f"the charge of a battery is not known; it was not checked against {least:.0%}", None
    if battery.charge_ratio >= least:
        return None, None
    status = (battery.status or "unknown").lower()
    return None, f"battery too low: {battery.charge_ratio:.0%} and {status}, at least {least:.0%} is asked; charge it"
