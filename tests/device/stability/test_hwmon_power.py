"""Power from hardware monitoring."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.hwmon_power import find_hwmon_power
from tests.sys_trees import UNREADABLE, plant, put

CHIP = "sys/class/hwmon/hwmon1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A Jetson's INA3221: three channels with current and voltage; the fourth current is the sum of some of them."""
    put(tmp_path, f"{CHIP}/name", "ina3221")
    channels = [("VDD_IN", 1200, 5000), ("VDD_CPU_GPU_CV", 400, 5000), ("VDD_SOC", 300, 5000)]
    for number, (label, milliamperes, millivolts) in enumerate(channels, 1):
        put(tmp_path, f"{CHIP}/in{number}_label", label)
        put(tmp_path, f"{CHIP}/curr{number}_input", str(milliamperes))
        put(tmp_path, f"{CHIP}/in{number}_input", str(millivolts))
    put(tmp_path, f"{CHIP}/curr4_input", "9999")
    return tmp_path


def test_current_times_voltage(root: Path) -> None:
    """Each channel is a sensor of its own, and says whether it is the whole board."""
    found = find_hwmon_power(root)
    assert [(each.name, each.read().watts, each.is_whole) for each in found] == [
        ("ina3221 VDD_IN", 6.0, True),
        ("ina3221 VDD_CPU_GPU_CV", 2.0, False),
        ("ina3221 VDD_SOC", 1.5, False),
    ]


def test_a_power_is_taken_as_it_is(root: Path) -> None:
    """In microwatts; the chip's currents are not multiplied once more."""
    put(root, f"{CHIP}/power1_input", "6100000")
    (found,) = find_hwmon_power(root)
    assert (found.name, found.read().watts) == ("ina3221 VDD_IN", 6.1)


@pytest.mark.parametrize("file", ["curr1_input", "in1_input"])
@pytest.mark.parametrize("reading", ["-1200", "0", "much", "", "99999999999", UNREADABLE, None])
def test_a_channel_that_lies_is_not_measured(root: Path, file: str, reading: str | Path | None) -> None:
    """Never 0, and never less."""
    sensor = find_hwmon_power(root)[0]
    put(root, f"{CHIP}/{file}", reading)
    assert sensor.read().watts is None


@pytest.mark.parametrize("reading", ["-6000000", "0", "9" * 12, UNREADABLE])
def test_a_power_that_lies_is_not_measured(root: Path, reading: str | Path) -> None:
    """A power below 0 is a sensor that is mounted the wrong way round, or none."""
    put(root, f"{CHIP}/power1_input", reading)
    assert find_hwmon_power(root)[0].read().watts is None


def test_a_supply_that_shows_itself_as_a_chip_is_none(root: Path) -> None:
    """Its first current and its first voltage are not of the same place."""
    put(root, "sys/devices/platform/power_supply/tcpm/type", "USB")
    put(root, f"{CHIP}/device", root / "sys/devices/platform/power_supply/tcpm")
    assert find_hwmon_power(root) == ()


@pytest.mark.parametrize("board", ["rubikpi", "orangepi5", "raspberrypi5", "pixel8pro"])
def test_most_boards_have_none(tmp_path: Path, board: str) -> None:
    """A voltage without a current is no power."""
    assert find_hwmon_power(plant(board, tmp_path)) == ()
