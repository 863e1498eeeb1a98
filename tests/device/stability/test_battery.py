"""The battery."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.conditions import Conditions
from perfsuite.device.stability.battery import check_battery, read_battery
from tests.sys_trees import UNREADABLE, plant, put

SUPPLY = "sys/class/power_supply/battery"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A phone at 63 %, unplugged."""
    return plant("pixel8pro", tmp_path)


def test_a_phone_has_a_battery(root: Path) -> None:
    """Its charge and whether it drains are told."""
    battery = read_battery(root)
    assert battery is not None
    assert (battery.charge_ratio, battery.is_charging) == (0.63, False)


@pytest.mark.parametrize("board", ["rubikpi", "orangepi5", "raspberrypi5"])
def test_a_board_has_none(tmp_path: Path, board: str) -> None:
    """There is nothing to check, which is told where it was asked for."""
    root = plant(board, tmp_path)
    assert read_battery(root) is None
    note, problem = check_battery(Conditions(least_battery_ratio=0.5), root)
    assert note is not None
    assert "not known" in note
    assert problem is None


def test_a_mouse_is_no_battery(tmp_path: Path) -> None:
    """Neither is a bay without one."""
    put(tmp_path, "sys/class/power_supply/hidpp_battery_0/type", "Battery")
    put(tmp_path, "sys/class/power_supply/hidpp_battery_0/scope", "Device")
    put(tmp_path, "sys/class/power_supply/BAT1/type", "Battery")
    put(tmp_path, "sys/class/power_supply/BAT1/present", "0")
    assert read_battery(tmp_path) is None


def test_a_low_battery_is_a_problem(root: Path) -> None:
    """What is measured then is INVALID."""
    assert check_battery(Conditions(least_battery_ratio=0.8), root) == (
        None,
        "battery too low: 63% and discharging, at least 80% is asked; charge it",
    )
    assert check_battery(Conditions(least_battery_ratio=0.63), root) == (None, None)
    assert check_battery(Conditions(), root) == (None, None)


@pytest.mark.parametrize(("status", "is_problem"), [("Charging", False), ("Full", False), ("Not charging", True)])
def test_a_battery_that_is_charged_may_be_low(root: Path, status: str, is_problem: bool) -> None:
    """The charger keeps the device from slowing down."""
    put(root, f"{SUPPLY}/status", status)
    assert (check_battery(Conditions(least_battery_ratio=0.8), root)[1] is not None) == is_problem


@pytest.mark.parametrize("capacity", ["-1", "101", "full", "", UNREADABLE, None])
def test_a_charge_that_cannot_be_is_not_known(root: Path, capacity: str | Path | None) -> None:
    """It is told, and nothing is called too low."""
    put(root, f"{SUPPLY}/capacity", capacity)
    note, problem = check_battery(Conditions(least_battery_ratio=0.8), root)
    assert problem is None
    assert note is not None
    assert "not known" in note


def test_a_battery_without_a_status_is_neither(root: Path) -> None:
    """None is 'not known'."""
    put(root, f"{SUPPLY}/status", UNREADABLE)
    battery = read_battery(root)
    assert battery is not None
    assert battery.is_charging is None
