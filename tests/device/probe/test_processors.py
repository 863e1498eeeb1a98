"""Clusters, and which processors are the fast ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.doctor.rest_checks import throttling
from perfsuite.device.probe.processors import Told, big_processors, board_name, clusters, shipped_kind
from perfsuite.device.probe.readings import read_lines
from perfsuite.device.probe.sensors import battery, gpu_clocks, power_sensors, zones
from perfsuite.device.stability.small_files import processor_list
from tests.sys_trees import FIELD, SMALL_CORES_OFF, ZONES_FAIL

from ..doctor.device_facts import facts
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
    hwmon = "/sys/class/hwmon/hwmon1"
    found = readings(
        f"{hwmon}/power1_input = 5", f"{hwmon}/curr1_input = 1", f"{hwmon}/in1_input = 5", f"{hwmon}/curr2_input = 1"
    )
    assert power_sensors(found) == (f"{hwmon}/power1_input", f"{hwmon}/curr1_input")


@pytest.mark.parametrize(
    ("tree", "big"),
    [
        ("rubikpi", (4, 5, 6, 7)),
        ("orangepi5", (4, 5, 6, 7)),
        ("raspberrypi5", ()),
        ("pixel8pro", (4, 5, 6, 7, 8)),
        (SMALL_CORES_OFF, ()),
    ],
)
def test_the_fast_processors_of_five_boards(tree: str, big: tuple[int, ...], tmp_path: Path) -> None:
    assert big_processors(clusters(surveyed(tree, tmp_path))) == big


def test_capacities_tell_more_than_clocks() -> None:
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


_KINDS = [f"/proc/cpuinfo = {line}" for cpu in range(7) for line in (f"processor : {cpu}", f"CPU part : {cpu > 3}")]
_CAPACITIES = [f"/sys/devices/system/cpu/cpu{cpu}/cpu_capacity = {1024 if cpu > 3 else 300}" for cpu in range(7)]


@pytest.mark.parametrize(
    ("told", "expected", "big"),
    [
        ([], [(0, 1, 2, 3, 4, 5, 6)], ()),
        (_KINDS, [(0, 1, 2, 3), (4, 5, 6)], ()),
        (_CAPACITIES, [(0, 1, 2, 3), (4, 5, 6)], (4, 5, 6)),
    ],
)
def test_without_control_of_clocks_kinds_are_told_apart(
    told: list[str], expected: list[tuple[int, ...]], big: tuple[int, ...]
) -> None:
    found = clusters(readings("/sys/devices/system/cpu/online = 0-6", *told))
    assert [(each.processors, each.path) for each in found] == [(each, None) for each in expected]
    assert big_processors(found) == big
    assert clusters(readings()) == ()


def test_only_processors_that_are_on_are_in_a_cluster(tmp_path: Path) -> None:
    (only,) = clusters(surveyed(SMALL_CORES_OFF, tmp_path))
    assert (only.processors, only.governor, only.lower_khz, only.upper_khz) == ((4, 5), "performance", 1800000, 1800000)
    policy = "/sys/devices/system/cpu/cpufreq/policy0/related_cpus = 0 1 2 3"
    found = clusters(readings("/sys/devices/system/cpu/online = 1-2,5", policy))
    assert [each.processors for each in found] == [(1, 2), (5,)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_phone_that_keeps_its_battery_to_itself(end: str) -> None:
    """What a linker says between is no answer, nor is a service that is closed; no other phone's profile is taken."""
    told = read_lines((FIELD / "20-phone-adb-answers" / "answers.txt").read_text().replace("\n", end))
    assert (board_name(told), shipped_kind(told)) == (
        Told(value="Google Pixel 7 Pro", source="getprop ro.product.model"),
        None,
    )
    assert big_processors(clusters(told)) == (4, 5, 6, 7)
    assert battery(told) is None
    assert throttling(facts(readings=told)).seen == "Android's thermal status is 2"


def test_zones_are_known_by_their_trips(tmp_path: Path) -> None:
    """A processor's zone may be called B0D4; a trip of 0 or below is none, and what fails has no temperature."""
    found = zones(surveyed(ZONES_FAIL, tmp_path))
    assert [each.type for each in found if each.is_computing and each.celsius is not None] == ["B0D4", "x86_pkg_temp"]
    assert [each.slows_at_celsius for each in found if each.slows_at_celsius is not None] == [94.0]
    unread = {each.type for each in found if each.celsius is None}
    assert unread == {"acpitz", "SEN1", "TSKN", "iwlwifi_1", "pch_skylake"}


def test_lists_of_processors_are_read_in_both_forms() -> None:
    assert processor_list("0-2,5") == processor_list("0 1 2 5") == (0, 1, 2, 5)
    assert processor_list("") == ()
