"""Power of the rails of a Raspberry Pi 5's power chip."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.firmware import Firmware, find_firmware
from perfsuite.device.stability.power_reading import NOTHING_READ, PowerReading, sensible_watts


@dataclass(frozen=True, slots=True, kw_only=True)
class RailsPower:
    """The sum over the rails whose current and voltage the power chip measures."""

    firmware: Firmware
    name: str = "vcgencmd pmic_read_adc"
    covers: str = (
        "the rails of the power chip; what 5 V feeds directly (USB devices, fan, HATs) and the chip's own losses are "
        "left out"
    )

    def read(self) -> PowerReading:
        """Ask the firmware."""
        watts = self.firmware.rails_watts()
        return NOTHING_READ if watts is None else PowerReading(watts=sensible_watts(watts))


def find_rails_power(root: Path) -> tuple[RailsPower, ...]:
    """Return the rails where there is a firmware to ask."""
    firmware = find_firmware(root)
    return () if firmware is None else (RailsPower(firmware=firmware),)
