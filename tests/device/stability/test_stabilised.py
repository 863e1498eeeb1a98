"""Waiting until a device is cool enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite.device.machine import Conditions
from perfsuite.device.stability.stabilised import Cooled, wait_until_cool
from tests.sys_trees import UNREADABLE, plant, put

ZONE = "sys/class/thermal/thermal_zone0/temp"


class Clock:
    """A clock that only sleeping moves, and what happens meanwhile."""

    def __init__(self, happens: Callable[[float], object] = lambda _: None) -> None:
        self.now_s = 1000.0
        self.n_sleeps = 0
        self._happens = happens

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s
        self.n_sleeps += 1
        self._happens(self.now_s - 1000.0)


def waited(root: Path, clock: Clock, limit_celsius: float | None = 50.0, **fields: object) -> Cooled:
    conditions = Conditions(start_below_celsius=limit_celsius, **fields)  # type: ignore[arg-type]
    return wait_until_cool(conditions, root=root, clock=clock, sleep=clock.sleep)


@pytest.fixture
def raspberry(tmp_path: Path) -> Path:
    """A Raspberry Pi at 52.35 °C."""
    return plant("raspberrypi5", tmp_path)


def test_a_cool_device_begins_at_once(raspberry: Path) -> None:
    clock = Clock()
    assert waited(raspberry, clock, 52.4) == Cooled()
    assert clock.n_sleeps == 0
    put(raspberry, ZONE, UNREADABLE)
    assert waited(raspberry, Clock(), None) == Cooled()


def test_it_waits_until_the_device_is_cool(raspberry: Path) -> None:
    clock = Clock(lambda passed_s: put(raspberry, ZONE, str(52350 - int(passed_s) * 100)))
    assert waited(raspberry, clock) == Cooled(notes=("waited 25 s until cpu-thermal was at 49.9 °C, below 50 °C",))
    put(raspberry, ZONE, "50000")
    assert waited(raspberry, Clock(), cooling_limit_s=0.0).problem is not None


def test_a_device_that_stays_hot_is_a_problem_after_the_limit(raspberry: Path) -> None:
    """What is measured then is INVALID, with the zone, the temperature, and what to do."""
    clock = Clock(lambda passed_s: put(raspberry, ZONE, str(61000 + int(passed_s))))
    found = waited(raspberry, clock, cooling_limit_s=12.0)
    assert clock.now_s == 1012.0
    assert found.problem == (
        "too hot to begin: cpu-thermal is at 61.0 °C after 12 s, not below 50 °C; "
        "cool the device or raise start_below_celsius"
    )


def test_a_zone_that_never_moves_is_suspected(raspberry: Path) -> None:
    """A stuck sensor cannot be distinguished from a device that stays hot, but its user can be pointed at it."""
    found = waited(raspberry, Clock(), cooling_limit_s=60.0)
    assert found.problem is not None
    assert "as a stuck sensor does: leave it out of thermal_zones" in found.problem


def test_zones_that_are_not_there_are_told(raspberry: Path) -> None:
    """A typing mistake in a profile is not silent."""
    found = waited(raspberry, Clock(), 60.0, thermal_zones=("cpu-thermal", "gpu-thermal"))
    assert found == Cooled(notes=("no thermal zone is called gpu-thermal; the others count",))


@pytest.mark.parametrize("reading", [UNREADABLE, "0", None])
def test_zones_that_all_read_nonsense_are_told_and_gate_nothing(raspberry: Path, reading: str | Path | None) -> None:
    """After three looks it is given up."""
    put(raspberry, ZONE, reading)
    put(raspberry, "sys/class/hwmon/hwmon0/temp1_input", "0")
    clock = Clock()
    (note,) = waited(raspberry, clock).notes
    assert note.startswith("the temperature is not known (none of cpu-thermal reads a sensible one)")
    assert clock.n_sleeps == 2


def test_a_device_without_zones_is_told(tmp_path: Path) -> None:
    clock = Clock()
    found = waited(tmp_path, clock)
    assert found.problem is None
    assert "no thermal zone that counts is there" in found.notes[0]
    assert clock.n_sleeps == 0


def test_a_sensor_that_is_busy_at_first_is_asked_again(raspberry: Path) -> None:
    """Some answer EAGAIN until they have measured."""
    put(raspberry, ZONE, "")
    clock = Clock(lambda _: put(raspberry, ZONE, "44000"))
    assert waited(raspberry, clock, thermal_zones=("cpu-thermal",)).notes == (
        "waited 5 s until cpu-thermal was at 44.0 °C, below 50 °C",
    )
