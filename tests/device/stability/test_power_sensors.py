"""Which sensor is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.power_sensors import find_power_sensors
from tests.sys_trees import plant, put


@pytest.mark.parametrize(
    ("board", "names"),
    [
        ("rubikpi", []),
        ("orangepi5", []),
        ("raspberrypi5", ["vcgencmd pmic_read_adc"]),
        ("pixel8pro", ["battery battery"]),
    ],
)
def test_the_sensors_of_a_board(tmp_path: Path, board: str, names: list[str]) -> None:
    """Two of the four can be asked."""
    assert [each.name for each in find_power_sensors(plant(board, tmp_path))] == names


def test_what_covers_most_comes_first(tmp_path: Path) -> None:
    """The board's input comes before the battery, and a part comes last."""
    root = plant("pixel8pro", tmp_path)
    for number, label in enumerate(("PPT", "VDD_IN"), 1):
        put(root, f"sys/class/hwmon/hwmon0/power{number}_label", label)
        put(root, f"sys/class/hwmon/hwmon0/power{number}_input", "5000000")
    assert [each.name for each in find_power_sensors(root)] == ["hwmon0 VDD_IN", "battery battery", "hwmon0 PPT"]


def test_a_sensor_that_says_nothing_is_none(tmp_path: Path) -> None:
    """A battery on a charger leaves the place to the next one."""
    root = plant("pixel8pro", tmp_path)
    put(root, "sys/class/power_supply/battery/status", "Charging")
    assert find_power_sensors(root) == ()
