"""Power from a battery."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.supply_power import find_supply_power
from tests.sys_trees import UNREADABLE, plant, put

BATTERY = "sys/class/power_supply/battery"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A phone that draws 0.8125 A at 3.998 V."""
    return plant("pixel8pro", tmp_path)


@pytest.mark.parametrize("microamperes", ["-812500", "812500"])
def test_a_battery_that_drains_tells_the_power(root: Path, microamperes: str) -> None:
    """Drivers do not agree on the sign of the current."""
    put(root, f"{BATTERY}/current_now", microamperes)
    (found,) = find_supply_power(root)
    assert found.read().watts == pytest.approx(0.8125 * 3.998)


def test_a_laptop_tells_its_power_itself(root: Path) -> None:
    """In microwatts."""
    put(root, f"{BATTERY}/power_now", "7500000")
    assert find_supply_power(root)[0].read().watts == 7.5


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", "Unknown", "", UNREADABLE])
def test_a_battery_that_does_not_drain_says_nothing(root: Path, status: str | Path) -> None:
    """What goes in is not what the device draws."""
    put(root, f"{BATTERY}/status", status)
    assert find_supply_power(root)[0].read().watts is None


@pytest.mark.parametrize("file", ["current_now", "voltage_now"])
@pytest.mark.parametrize("reading", ["0", "none", "", "9" * 17, UNREADABLE, None])
def test_a_battery_that_lies_is_not_measured(root: Path, file: str, reading: str | Path | None) -> None:
    """Neither is one with half of what is needed."""
    put(root, f"{BATTERY}/{file}", reading)
    assert find_supply_power(root)[0].read().watts is None


def test_a_negative_voltage_is_none(root: Path) -> None:
    """Only the current has a sign that may be either."""
    put(root, f"{BATTERY}/voltage_now", "-3998000")
    assert find_supply_power(root)[0].read().watts is None
