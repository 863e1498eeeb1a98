"""Whether a device is held back."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.throttling import find_throttling
from tests.sys_trees import UNREADABLE, plant, put

POLICY = "sys/devices/system/cpu/cpufreq/policy0"
COOLER = "sys/class/thermal/cooling_device1"


@pytest.mark.parametrize("board", ["rubikpi", "orangepi5", "raspberrypi5"])
def test_a_cool_board_is_not_throttled(tmp_path: Path, board: str) -> None:
    """A fan that turns holds nothing back."""
    found = find_throttling(plant(board, tmp_path)).read()
    assert (found.reasons, found.is_throttled, found.n_events) == ((), False, None)


def test_a_hot_phone_tells_what_is_held_back(tmp_path: Path) -> None:
    """Its caps and its cooling devices say so; a charger that is throttled is none of them."""
    assert find_throttling(plant("pixel8pro", tmp_path)).read().reasons == (
        "policy4 is held to 910 of 2367 MHz",
        "policy8 is held to 1164 of 2914 MHz",
        "thermal-cpufreq-1 is at step 10 of 14",
        "thermal-cpufreq-2 is at step 12 of 14",
    )


def test_a_clock_that_is_held_on_purpose_is_not_throttled(tmp_path: Path) -> None:
    """Lowest and highest rate are one where somebody has locked the clock."""
    root = plant("raspberrypi5", tmp_path)
    put(root, f"{POLICY}/scaling_max_freq", "1500000")
    assert find_throttling(root).read().is_throttled is False
    put(root, f"{POLICY}/scaling_max_freq", "1600000")
    assert find_throttling(root).read().reasons == ("policy0 is held to 1600 of 2400 MHz",)


@pytest.mark.parametrize("state", ["-1", "99", "hot", "", UNREADABLE, None])
def test_a_cooling_device_that_lies_is_left_out(tmp_path: Path, state: str | Path | None) -> None:
    """A step below 0, or above the last one, is none."""
    root = plant("orangepi5", tmp_path)
    put(root, f"{COOLER}/cur_state", state)
    assert find_throttling(root).read().reasons == ()


@pytest.mark.parametrize("rate", ["0", "-5", "9999999", "fast", UNREADABLE, None])
def test_a_cap_that_cannot_be_is_left_out(tmp_path: Path, rate: str | Path | None) -> None:
    """The other signs stay."""
    root = plant("orangepi5", tmp_path)
    put(root, f"{POLICY}/scaling_max_freq", rate)
    put(root, f"{COOLER}/cur_state", "3")
    assert find_throttling(root).read().reasons == ("cpufreq-cpu0 is at step 3 of 7",)


def test_a_pi_with_too_little_voltage_is_throttled(tmp_path: Path) -> None:
    """Its firmware says so."""
    root = plant("raspberrypi5", tmp_path)
    put(root, "sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled", "5")
    assert find_throttling(root).read().reasons == ("under-voltage", "throttled")


def test_a_pc_counts(tmp_path: Path) -> None:
    """What it counted since its start is no throttling now."""
    for cpu, count in enumerate(("3", "4", "-7", "many")):
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count", count)
    found = find_throttling(tmp_path).read()
    assert (found.n_events, found.is_throttled) == (7, None)


def test_a_machine_that_tells_nothing_is_not_known(tmp_path: Path) -> None:
    """Not known is not 'not throttled'."""
    found = find_throttling(tmp_path)
    assert (found.read().is_throttled, found.read().n_events, found.sources) == (None, None, ())
