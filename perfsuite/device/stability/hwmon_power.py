"""Power as the kernel's hardware monitoring tells it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.stability.power_reading import NOTHING_READ, PowerReading, sensible_watts
from perfsuite.device.stability.small_files import entries, is_there, read_line, read_number

#: Channels that feed the whole board: ``VDD_IN`` and ``VIN_SYS_5V0`` of Jetson modules, and what names itself so.
_WHOLE = re.compile(r"(?i)vdd_in|vin(?:_.*)?|.*(?:system|total|board).*")


@dataclass(frozen=True, slots=True, kw_only=True)
class HwmonPower:
    """A channel with a power, or with a current and a voltage."""

    chip: str
    label: str
    #: µW.
    power: Path | None
    #: mA and mV, where there is no power.
    current: Path | None = None
    voltage: Path | None = None

    @property
    def name(self) -> str:
        """The chip and the channel."""
        return f"{self.chip} {self.label}"

    @property
    def is_whole(self) -> bool:
        """Whether the channel feeds the whole board, by its name."""
        return bool(_WHOLE.fullmatch(self.label))

    @property
    def covers(self) -> str:
        """What the channel feeds."""
        return "the whole board" if self.is_whole else f"what {self.label} of {self.chip} feeds, and nothing else"

    def read(self) -> PowerReading:
        """Read the power, or the product."""
        if self.power is not None:
            microwatts = read_number(self.power)
            return NOTHING_READ if microwatts is None else PowerReading(watts=sensible_watts(microwatts / 1e6))
        if self.current is None or self.voltage is None:
            return NOTHING_READ
        milliamperes, millivolts = read_number(self.current), read_number(self.voltage)
        if milliamperes is None or millivolts is None or milliamperes < 0:
            return NOTHING_READ
        return PowerReading(watts=sensible_watts(milliamperes * millivolts / 1e6))


def find_hwmon_power(root: Path) -> tuple[HwmonPower, ...]:
    """Return every channel that tells a power; where a chip has them, its products are not added."""
    return tuple(sensor for chip in entries(root / "sys/class/hwmon", "hwmon*") for sensor in _channels(chip))


def _channels(chip: Path) -> tuple[HwmonPower, ...]:
    name = read_line(chip / "name") or chip.name
    powers = tuple(
        HwmonPower(chip=name, label=_label(chip, path, "power"), power=path) for path in entries(chip, "power*_input")
    )
    return powers or tuple(
        HwmonPower(chip=name, label=_label(chip, voltage, "in"), power=None, current=current, voltage=voltage)
        for current in entries(chip, "curr*_input")
        if is_there(voltage := chip / current.name.replace("curr", "in")) and not _is_supply(chip)
    )


def _label(chip: Path, path: Path, kind: str) -> str:
    """Return the channel's label, which is the voltage's where the other has none, or the file's name."""
    number = path.name.removeprefix(kind).removesuffix("_input")
    own = read_line(chip / f"{kind}{number}_label")
    return own or read_line(chip / f"in{number}_label") or path.name.removesuffix("_input")


def _is_supply(chip: Path) -> bool:
    """Whether a power supply shows itself as a chip once more; its channels do not belong to each other."""
    try:
        return "power_supply" in (chip / "device").resolve().parts
    except (OSError, RuntimeError):
        return False
