"""What measures a device's power: hardware monitoring, a battery that drains, a Raspberry Pi's power chip, RAPL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfsuite.device.machine import Conditions
from perfsuite.device.stability.small_files import entries, is_there, read_line, read_number
from perfsuite.device.stability.throttling import find_firmware


@dataclass(frozen=True, slots=True, kw_only=True)
class Battery:
    """A battery that the device runs from."""

    folder: Path
    #: None where the charge is not told, or is none.
    charge_ratio: float | None
    #: As the kernel has it: Charging, Discharging, Not charging, Full, Unknown.
    status: str | None

    @property
    def is_fed(self) -> bool | None:
        """Whether the device runs from its supply: a battery that is kept below full is 'Not charging'."""
        return None if self.status in (None, "Unknown") else self.status != "Discharging"


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
    """Return a note, and the problem if the battery is not fed and holds less than is asked for."""
    least = conditions.least_battery_ratio
    battery = read_battery(root) if least is not None else None
    if least is None or (battery is not None and battery.is_fed):
        return None, None
    if battery is None or battery.charge_ratio is None:
        return f"the charge of a battery is not known; it was not checked against {least:.0%}", None
    if battery.charge_ratio >= least:
        return None, None
    status = (battery.status or "unknown").lower()
    return None, f"battery too low: {battery.charge_ratio:.0%} and {status}, at least {least:.0%} is asked; charge it"


#: Channels that feed the whole board: ``VDD_IN`` and ``VIN_SYS_5V0`` of Jetson modules, and what names itself so.
_WHOLE = re.compile(r"(?i)vdd_in|vin(?:_.*)?|.*(?:system|total|board).*")

#: More than any device here draws; such a reading is none. So is 0 W, and less.
_MOST_WATTS = 2000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReading:
    """One reading: a power now, or energy counted since some beginning; None is 'not measured'."""

    watts: float | None = None
    counted_joules: float | None = None


NOTHING_READ = PowerReading()


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSensor:
    """A sensor of power, or a counter of energy."""

    #: Such as ``ina3221 VDD_IN``.
    name: str
    read: Callable[[], PowerReading]
    #: What it reads, but for a program.
    files: tuple[Path, ...] = ()


def find_power_sensors(root: Path) -> tuple[PowerSensor, ...]:
    """Return all sensors that read something now, the one that covers most of the device first.

    The order: the input of the whole board, the battery that drains, the rails of a Raspberry Pi's power chip (without
    what 5 V feeds directly and the chip's own losses), the counters of x86 packages (without memory, disks and power
    supply), then what measures a part.
    """
    channels = [each for chip in entries(root / "sys/class/hwmon", "hwmon*") for each in _channels(chip)]
    found = (
        *(sensor for label, sensor in channels if _WHOLE.fullmatch(label)),
        *_battery(root),
        *_rails(root),
        *_package_energy(root),
        *(sensor for label, sensor in channels if not _WHOLE.fullmatch(label)),
    )
    return tuple(sensor for sensor in found if sensor.read() != NOTHING_READ)


def _sensible(watts: float) -> PowerReading:
    """Return a power that a device can draw, and nothing for another."""
    return PowerReading(watts=watts) if 0 < watts <= _MOST_WATTS else NOTHING_READ


def _product(*files: Path, n_per_watt: float, has_sign: bool = True) -> PowerReading:
    """Return the product of what the files hold; where a sign says nothing, that of the first does not count."""
    product = 1
    for place, file in enumerate(files):
        number = read_number(file)
        if number is None or (number < 0 and (has_sign or place)):
            return NOTHING_READ
        product *= abs(number)
    return _sensible(product / n_per_watt)


def _channels(chip: Path) -> Iterator[tuple[str, PowerSensor]]:
    """Yield every channel of a chip that tells a power, with its label; where it has them, no products are added."""
    name = read_line(chip / "name") or chip.name
    powers = [(_label(chip, path, "power"), (path,)) for path in entries(chip, "power*_input")]
    for label, files in powers or _current_channels(chip):
        yield label, PowerSensor(name=f"{name} {label}", read=partial(_product, *files, n_per_watt=1e6), files=files)


def _current_channels(chip: Path) -> list[tuple[str, tuple[Path, ...]]]:
    """Return the channels with a current in mA and a voltage in mV."""
    pairs = [(each, chip / each.name.replace("curr", "in")) for each in entries(chip, "curr*_input")]
    return [(_label(chip, pair[1], "in"), pair) for pair in pairs if is_there(pair[1]) and not _is_supply(chip)]


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


def _battery(root: Path) -> Iterator[PowerSensor]:
    """Yield the device's battery: what it gives is what the device draws, as long as nothing else feeds it."""
    battery = read_battery(root)
    if battery is not None:
        files = tuple(battery.folder / each for each in ("status", "power_now", "current_now", "voltage_now"))
        yield PowerSensor(name=f"battery {battery.folder.name}", read=partial(_drained, battery.folder), files=files)


def _drained(battery: Path) -> PowerReading:
    """Read the power, or current times voltage; drivers do not agree on the current's sign, so that it counts not."""
    if read_line(battery / "status") != "Discharging":
        return NOTHING_READ
    if read_number(battery / "power_now") is not None:
        return _product(battery / "power_now", n_per_watt=1e6, has_sign=False)
    return _product(battery / "current_now", battery / "voltage_now", n_per_watt=1e12, has_sign=False)


def _rails(root: Path) -> Iterator[PowerSensor]:
    firmware = find_firmware(root)
    if firmware is not None:
        yield PowerSensor(name="vcgencmd pmic_read_adc", read=lambda: _sensible(firmware.rails_watts() or 0.0))


@dataclass(slots=True, kw_only=True)
class _Counter:
    """One counter of µJ, which begins again at 0 when it is full."""

    folder: Path
    total_uj: int = 0
    _last_uj: int | None = None
    #: It has gone back, and nobody knows by how much.
    _is_lost: bool = False

    def read_uj(self) -> int | None:
        """Return what was counted since the first reading.

        A wrap is undone with ``max_energy_range_uj``, so that there must be a reading in each turn of the counter: one
        is more than a minute even at full load.
        """
        now = read_number(self.folder / "energy_uj")
        if now is None or now < 0 or self._is_lost:
            return None
        passed = 0 if self._last_uj is None else now - self._last_uj
        if passed < 0:
            full = read_number(self.folder / "max_energy_range_uj")
            self._is_lost = full is None or full < (self._last_uj or 0)
            if full is None or self._is_lost:
                return None
            passed += full
        self._last_uj = now
        self.total_uj += passed
        return self.total_uj


def _package_energy(root: Path) -> Iterator[PowerSensor]:
    """Yield the counter of the whole platform, or else those of all packages; their parts are in them."""
    folders = entries(root / "sys/class/powercap", "intel-rapl:*")
    named = [(read_line(folder / "name") or "", folder) for folder in folders if folder.name.count(":") == 1]
    whole = [folder for name, folder in named if name == "psys"]
    chosen = whole[:1] or [folder for name, folder in named if name.startswith("package")]
    if chosen:
        files = tuple(each / name for each in chosen for name in ("energy_uj", "max_energy_range_uj"))
        counters = [_Counter(folder=each) for each in chosen]
        yield PowerSensor(name="RAPL", read=partial(_counted, counters), files=files)


def _counted(counters: list[_Counter]) -> PowerReading:
    """Read all counters; nothing where one of them cannot be read, as for users other than root."""
    read = [counter.read_uj() for counter in counters]
    known = [each for each in read if each is not None]
    return PowerReading(counted_joules=sum(known) / 1e6) if len(known) == len(read) else NOTHING_READ
