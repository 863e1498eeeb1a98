"""The profile that is written: what it says of boards, and that it is read as every other."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.probe.profile_text import profile_text
from perfsuite.device.probe.readings import Readings
from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.reach import Reach

from .device_trees import readings, surveyed

REACH = Reach(way="ssh", address="pi@board", port=2222)


def read_back(told: Readings, folder: Path, reach: Reach = REACH) -> Profile:
    (folder / "bench.toml").write_text(profile_text(told, reach, day="2026-11-22"))
    return find_profile("bench", folders=(folder,))


@pytest.mark.parametrize("tree", ["rubikpi", "orangepi5", "raspberrypi5", "pixel8pro"])
def test_what_four_boards_say_becomes_a_profile(tree: str, tmp_path: Path) -> None:
    told = surveyed(tree, tmp_path)
    profile = read_back(told, tmp_path)
    assert (profile.reach.way, profile.reach.address, profile.reach.port) == ("ssh", "pi@board", 2222)
    assert profile.conditions.governor == "performance"


def test_a_board_of_a_known_kind_extends_its_profile(tmp_path: Path) -> None:
    profile = read_back(
        readings(
            "/proc/device-tree/model = Orange Pi 5",
            "/proc/device-tree/compatible = xunlong,orangepi-5",
            "/proc/meminfo = MemTotal:        8139152 kB",
        ),
        tmp_path,
    )
    assert profile.description == "Orange Pi 5"
    assert profile.theoretical_peaks == find_profile("orangepi5", folders=()).theoretical_peaks
    assert profile.memory_bytes == 8 << 30


def test_other_boards_with_a_similar_name_are_none_of_the_kind(tmp_path: Path) -> None:
    """An Orange Pi 5 Plus is no Orange Pi 5; the processor alone makes no board."""
    told = readings("/proc/device-tree/model = Orange Pi 5 Plus", "/proc/device-tree/compatible = rockchip,rk3588")
    assert read_back(told, tmp_path).theoretical_peaks == ()


def test_a_run_begins_well_below_where_the_kernel_slows_down(tmp_path: Path) -> None:
    """The gate is 35 K below the trip, or a little above what the board has at rest."""
    zone = "/sys/class/thermal/thermal_zone0"
    trip = (f"{zone}/trip_point_0_type = passive", f"{zone}/trip_point_0_temp = 85000", f"{zone}/type = cpu-thermal")
    assert read_back(readings(*trip, f"{zone}/temp = 40000"), tmp_path).conditions.start_below_celsius == 50.0
    assert read_back(readings(*trip, f"{zone}/temp = 60000"), tmp_path).conditions.start_below_celsius == 65.0
    assert read_back(readings(*trip, f"{zone}/temp = 84000"), tmp_path).conditions.start_below_celsius == 70.0


def test_names_of_somebodys_choice_stay_texts(tmp_path: Path) -> None:
    """Quotes, backslashes and escapes in what a device says make no other key of a profile."""
    hostile = 'a"\\ b\x1b[31m\x7f " ] \\u0041'
    profile = read_back(readings(f"/proc/device-tree/model = {hostile}"), tmp_path)
    assert profile.description == 'a"\\ b?[31m? " ] \\u0041'
