"""What may explain a run and does not identify it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.covariates import device_covariates, host_covariates
from perfsuite.device.stability.state import read_state
from tests.sys_trees import UNREADABLE, plant, put


def test_a_machine_that_tells_everything(tmp_path: Path) -> None:
    """The load of the last minute, the mean clock, and the hottest sensor are told."""
    assert host_covariates(plant("rubikpi", tmp_path)) == {
        "load_average": 0.21,
        "cpu_mhz": 2217.6,
        "temperature_celsius": 44.8,
    }


def test_zones_and_processors_can_be_chosen(tmp_path: Path) -> None:
    """The covariates are then of what the run uses."""
    found = host_covariates(plant("rubikpi", tmp_path), zones=("cpu4-thermal",), processors=(4, 5, 6))
    assert (found["cpu_mhz"], found["temperature_celsius"]) == (2400.0, 43.7)


def test_a_virtual_machine_tells_its_clock(tmp_path: Path) -> None:
    """Without sensors it has no temperature, never a 0."""
    put(tmp_path, "proc/cpuinfo", "processor : 0\ncpu MHz : 2400.04")
    put(tmp_path, "proc/loadavg", "0.51234 9.0 9.0 1/2 3")
    assert host_covariates(tmp_path) == {"load_average": 0.512, "cpu_mhz": 2400.0, "temperature_celsius": None}


@pytest.mark.parametrize("reading", ["0", "warm", UNREADABLE, None])
def test_sensors_that_fail_are_none(tmp_path: Path, reading: str | Path | None) -> None:
    """A sensor that cannot be read is no reason to stop."""
    root = plant("raspberrypi5", tmp_path)
    put(root, "sys/class/thermal/thermal_zone0/temp", reading)
    put(root, "sys/class/hwmon/hwmon0/temp1_input", reading)
    assert host_covariates(root)["temperature_celsius"] is None


def test_this_machine_has_a_load() -> None:
    """Whatever else it tells."""
    assert host_covariates()["load_average"] is not None


def test_a_device_tells_more(tmp_path: Path) -> None:
    """Throttling is 1 or 0, and None where nobody knows."""
    phone = device_covariates(read_state(plant("pixel8pro", tmp_path / "phone")))
    board = device_covariates(read_state(plant("rubikpi", tmp_path / "board")))
    nothing = device_covariates(read_state(tmp_path / "nothing"))
    assert (phone["throttled"], phone["battery_ratio"]) == (1.0, 0.63)
    assert phone["power_watts"] == pytest.approx(3.248, abs=0.001)
    assert (board["throttled"], board["battery_ratio"], board["power_watts"]) == (0.0, None, None)
    assert set(nothing.values()) == {None}
    assert set(host_covariates(tmp_path)) < set(nothing)
