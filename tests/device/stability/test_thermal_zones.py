"""Temperatures of four boards."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.thermal_zones import find_zones, read_temperatures
from tests.sys_trees import SMALL_CORES_OFF, UNREADABLE, ZONES_FAIL, plant, put


@pytest.mark.parametrize(
    ("board", "hottest"),
    [
        ("rubikpi", ("cpu7-thermal", 44.8)),
        ("orangepi5", ("bigcore0-thermal", 45.307)),
        ("raspberrypi5", ("cpu-thermal", 52.35)),
        ("pixel8pro", ("BIG", 58.0)),
        (SMALL_CORES_OFF, ("cpu", 51.111)),
        (ZONES_FAIL, ("B0D4", 62.0)),
    ],
)
def test_the_hottest_zone_of_a_board(tmp_path: Path, board: str, hottest: tuple[str, float]) -> None:
    """All zones that are temperatures count; the Pixel's 88000 is a voltage's limit."""
    assert read_temperatures(find_zones(plant(board, tmp_path))).hottest == hottest


def test_the_zones_that_count_can_be_named(tmp_path: Path) -> None:
    zones = find_zones(plant("pixel8pro", tmp_path), ("quiet_therm", "G3D", "missing"))
    assert read_temperatures(zones).read == (("G3D", 50.0), ("quiet_therm", 40.5))


@pytest.mark.parametrize("reading", ["-274000", "0", "45", "-40000", "1000000", "warm", "", "51.2", UNREADABLE, None])
def test_nonsense_is_left_out_and_named(tmp_path: Path, reading: str | Path | None) -> None:
    """Sensors without power, dead ones and other units are no temperatures."""
    root = plant("rubikpi", tmp_path)
    put(root, "sys/class/thermal/thermal_zone10/temp", reading)
    found = read_temperatures(find_zones(root))
    assert found.unread == ("cpu7-thermal",)
    assert found.hottest == ("cpu4-thermal", 43.7)


def test_zones_that_hold_no_temperature_do_not_count(tmp_path: Path) -> None:
    """Vendors keep currents, voltages and charges in the same class; a zone of the SoC is one of temperature."""
    names = [
        "soc",
        "socd",
        "ibat",
        "vbat",
        "bcl-lvl0",
        "pm8350b-ibat-lvl0",
        "soft_ocp_cpu2",
        "smpl_gm",
        "battery_cycle",
    ]
    assert read_temperatures(find_zones(tmp_path)).hottest is None
    for number, name in enumerate((*names, "battery_cycle", "soc-thermal", "battery", "soc_therm")):
        put(tmp_path, f"sys/class/thermal/thermal_zone{number}/type", name)
        put(tmp_path, f"sys/class/thermal/thermal_zone{number}/temp", "90000")
    assert [zone.name for zone in find_zones(tmp_path)] == ["soc-thermal", "battery", "soc_therm"]


def test_a_pc_has_its_chip(tmp_path: Path) -> None:
    """The zone of its firmware says little of the processor; sensors of disks and radios do not count."""
    put(tmp_path, "sys/class/thermal/thermal_zone0/type", "acpitz")
    put(tmp_path, "sys/class/thermal/thermal_zone0/temp", "16800")
    put(tmp_path, "sys/class/hwmon/hwmon1/temp3_input", "99000")
    for number, (chip, reading) in enumerate([("nvme", "70000"), ("k10temp", "48000")]):
        put(tmp_path, f"sys/class/hwmon/hwmon{number}/name", chip)
        put(tmp_path, f"sys/class/hwmon/hwmon{number}/temp1_input", reading)
    assert read_temperatures(find_zones(tmp_path)).hottest == ("k10temp", 48.0)
    assert read_temperatures(find_zones(tmp_path, ("nvme",))).hottest == ("nvme", 70.0)
