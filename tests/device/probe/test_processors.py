"""Clusters, and which processors are the fast ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.probe.processors import big_processors, clusters, processor_list
from perfsuite.device.probe.sensors import battery, gpu_clocks, power_sensors, zones

from .device_trees import readings, surveyed


def test_zones_that_hold_no_temperature_are_none(tmp_path: Path) -> None:
    """Flags, counters and what is below any room are not believed; of several clocks, the GPU's has its name."""
    found = {each.type: each.celsius for each in zones(surveyed("pixel8pro", tmp_path))}
    assert found["BIG"] == 58.0
    assert found["soc"] is None
    assert found["batt_therm_sidekey"] is None
    assert found["rf1_therm"] is None
    assert [each.name for each in gpu_clocks(surveyed("orangepi5", tmp_path / "other"))] == ["fb000000.gpu"]


def test_the_kernel_slows_down_at_the_lowest_passive_trip() -> None:
    """Critical trips, which turn the device off, do not count."""
    (zone,) = zones(
        readings(
            "/sys/class/thermal/thermal_zone0/type = cpu-thermal",
            "/sys/class/thermal/thermal_zone0/temp = 41000",
            "/sys/class/thermal/thermal_zone0/trip_point_0_type = passive",
            "/sys/class/thermal/thermal_zone0/trip_point_0_temp = 90000",
            "/sys/class/thermal/thermal_zone0/trip_point_1_type = passive",
            "/sys/class/thermal/thermal_zone0/trip_point_1_temp = 85000",
            "/sys/class/thermal/thermal_zone0/trip_point_2_type = critical",
            "/sys/class/thermal/thermal_zone0/trip_point_2_temp = 80000",
        )
    )
    assert (zone.celsius, zone.slows_at_celsius, zone.is_computing) == (41.0, 85.0, True)


def test_a_battery_is_found_in_files_and_in_androids_words() -> None:
    """A battery of a mouse is none of the device; where Android keeps the files, its service tells."""
    found = battery(
        readings(
            "/sys/class/power_supply/hid/type = Battery",
            "/sys/class/power_supply/hid/scope = Device",
            "/sys/class/power_supply/bat/type = Battery",
            "/sys/class/power_supply/bat/status = Discharging",
            "/sys/class/power_supply/bat/capacity = 40",
        )
    )
    assert found is not None
    assert (found.charge_ratio, found.is_fed) == (0.4, False)
    told = battery(readings("battery =   AC powered: false", "battery =   USB powered: true", "battery =   level: 88"))
    assert told is not None
    assert (told.charge_ratio, told.is_fed) == (0.88, True)
    assert battery(readings("battery = nonsense")) is None


def test_power_is_read_directly_or_as_voltage_and_current() -> None:
    """A current without its voltage tells no power."""
    hwmon = "/sys/class/hwmon/hwmon1"
    found = readings(
        f"{hwmon}/power1_input = 5", f"{hwmon}/curr1_input = 1", f"{hwmon}/in1_input = 5", f"{hwmon}/curr2_input = 1"
    )
    assert power_sensors(found) == (f"{hwmon}/power1_input", f"{hwmon}/curr1_input")


@pytest.mark.parametrize(
    ("tree", "big"),
    [("rubikpi", (4, 5, 6, 7)), ("orangepi5", (4, 5, 6, 7)), ("raspberrypi5", ()), ("pixel8pro", (4, 5, 6, 7, 8))],
)
def test_the_fast_processors_of_four_boards(tree: str, big: tuple[int, ...], tmp_path: Path) -> None:
    """Small processors are left out; where all are alike, none is named."""
    assert big_processors(clusters(surveyed(tree, tmp_path))) == big


def test_capacities_tell_more_than_clocks() -> None:
    """Where the kernel tells capacities, they decide: a slow design may have a high clock."""
    found = clusters(
        readings(
            "/sys/devices/system/cpu/cpufreq/policy0/related_cpus = 0 1",
            "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq = 2000000",
            "/sys/devices/system/cpu/cpu0/cpu_capacity = 300",
            "/sys/devices/system/cpu/cpufreq/policy2/related_cpus = 2 3",
            "/sys/devices/system/cpu/cpufreq/policy2/cpuinfo_max_freq = 2100000",
            "/sys/devices/system/cpu/cpu2/cpu_capacity = 1024",
        )
    )
    assert big_processors(found) == (2, 3)


def test_without_control_of_clocks_there_is_one_cluster() -> None:
    """A virtual machine has its processors, and no governor."""
    (only,) = clusters(readings("/sys/devices/system/cpu/online = 0-1"))
    assert only.processors == (0, 1)
    assert only.path is None
    assert clusters(readings()) == ()


def test_lists_of_processors_are_read_in_both_forms() -> None:
    """The kernel writes ranges in some files and single numbers in others."""
    assert processor_list("0-2,5") == processor_list("0 1 2 5") == (0, 1, 2, 5)
    assert processor_list("") == ()
