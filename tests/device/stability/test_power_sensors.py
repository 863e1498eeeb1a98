"""Which sensors of power a device has, and what they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.machine import Conditions
from perfsuite.device.stability.power_sensors import PowerSensor, check_battery, find_power_sensors, read_battery
from tests.sys_trees import UNREADABLE, ZONES_FAIL, plant, put

SUPPLY = "sys/class/power_supply/battery"


def test_a_phone_has_a_battery(phone: Path) -> None:
    battery = read_battery(phone)
    assert battery is not None
    assert (battery.charge_ratio, battery.is_fed) == (0.63, False)
    put(phone, f"{SUPPLY}/status", UNREADABLE)
    battery = read_battery(phone)
    assert battery is not None
    assert battery.is_fed is None


@pytest.mark.parametrize("board", ["rubikpi", "orangepi5", "raspberrypi5"])
def test_a_board_has_none(tmp_path: Path, board: str) -> None:
    root = plant(board, tmp_path)
    assert read_battery(root) is None
    note, problem = check_battery(Conditions(least_battery_ratio=0.5), root)
    assert note is not None
    assert "not known" in note
    assert problem is None


def test_a_mouse_is_no_battery(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/power_supply/hidpp_battery_0/type", "Battery")
    put(tmp_path, "sys/class/power_supply/hidpp_battery_0/scope", "Device")
    put(tmp_path, "sys/class/power_supply/BAT1/type", "Battery")
    put(tmp_path, "sys/class/power_supply/BAT1/present", "0")
    assert read_battery(tmp_path) is None


def test_a_low_battery_is_a_problem(phone: Path) -> None:
    """What is measured then is INVALID."""
    assert check_battery(Conditions(least_battery_ratio=0.8), phone) == (
        None,
        "battery too low: 63% and discharging, at least 80% is asked; charge it",
    )
    assert check_battery(Conditions(least_battery_ratio=0.63), phone) == (None, None)
    assert check_battery(Conditions(), phone) == (None, None)


@pytest.mark.parametrize(
    ("status", "is_problem"), [("Charging", False), ("Full", False), ("Not charging", False), ("Unknown", True)]
)
def test_a_battery_that_is_charged_may_be_low(phone: Path, status: str, is_problem: bool) -> None:
    """The charger keeps the device from slowing down."""
    put(phone, f"{SUPPLY}/status", status)
    assert (check_battery(Conditions(least_battery_ratio=0.8), phone)[1] is not None) == is_problem


def test_a_laptop_that_keeps_its_battery_below_full_is_fed(tmp_path: Path) -> None:
    """A run and the doctor agree: its battery is 'Not charging' at 79 %, and the supply feeds it."""
    laptop = plant(ZONES_FAIL, tmp_path)
    assert check_battery(Conditions(least_battery_ratio=0.8), laptop) == (None, None)


@pytest.mark.parametrize("capacity", ["-1", "101", "full", "", UNREADABLE, None])
def test_a_charge_that_cannot_be_is_not_known(phone: Path, capacity: str | Path | None) -> None:
    put(phone, f"{SUPPLY}/capacity", capacity)
    note, problem = check_battery(Conditions(least_battery_ratio=0.8), phone)
    assert problem is None
    assert note is not None
    assert "not known" in note


CHIP = "sys/class/hwmon/hwmon1"
RAPL = "sys/class/powercap/intel-rapl"
FULL_UJ = 262_143_328_850


@pytest.fixture
def jetson(tmp_path: Path) -> Path:
    """A Jetson's INA3221: three channels with current and voltage; the fourth current is the sum of some of them."""
    put(tmp_path, f"{CHIP}/name", "ina3221")
    channels = [("VDD_CPU_GPU_CV", 400, 5000), ("VDD_IN", 1200, 5000), ("VDD_SOC", 300, 5000)]
    for number, (label, milliamperes, millivolts) in enumerate(channels, 1):
        put(tmp_path, f"{CHIP}/in{number}_label", label)
        put(tmp_path, f"{CHIP}/curr{number}_input", str(milliamperes))
        put(tmp_path, f"{CHIP}/in{number}_input", str(millivolts))
    put(tmp_path, f"{CHIP}/curr4_input", "9999")
    return tmp_path


@pytest.fixture
def phone(tmp_path: Path) -> Path:
    """A phone that draws 0.8125 A at 3.998 V."""
    return plant("pixel8pro", tmp_path)


@pytest.fixture
def pc(tmp_path: Path) -> Path:
    """A machine of two packages, each with a part of its own."""
    for number in (0, 1):
        put(tmp_path, f"{RAPL}:{number}/name", f"package-{number}")
        put(tmp_path, f"{RAPL}:{number}/energy_uj", "1000000")
        put(tmp_path, f"{RAPL}:{number}/max_energy_range_uj", str(FULL_UJ))
        put(tmp_path, f"{RAPL}:{number}:0/name", "core")
        put(tmp_path, f"{RAPL}:{number}:0/energy_uj", "900000")
    return tmp_path


def watts(root: Path) -> dict[str, float | None]:
    return {each.name: each.read().watts for each in find_power_sensors(root)}


def only(root: Path) -> PowerSensor:
    (found,) = find_power_sensors(root)
    return found


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        ("rubikpi", {}),
        ("orangepi5", {}),
        ("raspberrypi5", {"vcgencmd pmic_read_adc": pytest.approx(5.511)}),
        ("pixel8pro", {"battery battery": pytest.approx(0.8125 * 3.998)}),
    ],
)
def test_the_sensors_of_a_board(tmp_path: Path, board: str, expected: dict[str, float]) -> None:
    """Two of the four can be asked: the rails of a power chip are added, and a battery has current and voltage."""
    assert watts(plant(board, tmp_path)) == expected


def test_what_covers_most_comes_first(phone: Path) -> None:
    for number, label in enumerate(("PPT", "VDD_IN"), 1):
        put(phone, f"sys/class/hwmon/hwmon0/power{number}_label", label)
        put(phone, f"sys/class/hwmon/hwmon0/power{number}_input", "5000000")
    put(phone, f"{RAPL}:0/name", "package-0")
    put(phone, f"{RAPL}:0/energy_uj", "0")
    assert list(watts(phone)) == ["hwmon0 VDD_IN", "battery battery", "RAPL", "hwmon0 PPT"]


def test_current_times_voltage(jetson: Path) -> None:
    assert list(watts(jetson).items()) == [
        ("ina3221 VDD_IN", 6.0),
        ("ina3221 VDD_CPU_GPU_CV", 2.0),
        ("ina3221 VDD_SOC", 1.5),
    ]
    put(jetson, f"{CHIP}/power2_input", "6100000")
    assert watts(jetson) == {"ina3221 VDD_IN": 6.1}


@pytest.mark.parametrize("file", ["curr2_input", "in2_input"])
@pytest.mark.parametrize("reading", ["-1200", "0", "much", "", "99999999999", UNREADABLE, None])
def test_a_channel_that_lies_is_not_measured(jetson: Path, file: str, reading: str | Path | None) -> None:
    sensor = find_power_sensors(jetson)[0]
    put(jetson, f"{CHIP}/{file}", reading)
    assert sensor.read().watts is None
    assert "ina3221 VDD_IN" not in watts(jetson)


def test_a_current_and_a_voltage_below_0_are_no_power(jetson: Path) -> None:
    for file in ("curr2_input", "in2_input"):
        put(jetson, f"{CHIP}/{file}", "-1200")
    assert "ina3221 VDD_IN" not in watts(jetson)


@pytest.mark.parametrize("reading", ["-6000000", "0", "9" * 12, UNREADABLE])
def test_a_power_that_lies_is_not_measured(jetson: Path, reading: str | Path) -> None:
    """A power below 0 is a sensor that is mounted the wrong way round, or none."""
    put(jetson, f"{CHIP}/power1_input", reading)
    assert watts(jetson) == {}


def test_a_supply_that_shows_itself_as_a_chip_is_none(jetson: Path) -> None:
    """Its first current and its first voltage are not of the same place."""
    put(jetson, "sys/devices/platform/power_supply/tcpm/type", "USB")
    put(jetson, f"{CHIP}/device", jetson / "sys/devices/platform/power_supply/tcpm")
    assert watts(jetson) == {}


@pytest.mark.parametrize(
    ("file", "reading", "watts"),
    [
        *(("current_now", reading, 0.8125 * 3.998) for reading in ("-812500", "812500")),
        *(("power_now", reading, 7.5) for reading in ("7500000", "-7500000")),
    ],
)
def test_the_sign_of_a_battery_says_nothing(phone: Path, file: str, reading: str, watts: float) -> None:
    """Drivers do not agree on it; a laptop tells its power itself, in microwatts."""
    put(phone, f"{SUPPLY}/{file}", reading)
    assert only(phone).read().watts == pytest.approx(watts)


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", "Unknown", "", UNREADABLE])
def test_a_battery_that_does_not_drain_says_nothing(phone: Path, status: str | Path) -> None:
    put(phone, f"{SUPPLY}/status", status)
    assert watts(phone) == {}


@pytest.mark.parametrize(
    ("file", "reading"),
    [
        *((file, each) for file in ("current_now", "voltage_now") for each in ("0", "none", "", "9" * 17)),
        *((file, each) for file in ("current_now", "voltage_now") for each in (UNREADABLE, None)),
        ("voltage_now", "-3998000"),
    ],
)
def test_a_battery_that_lies_is_not_measured(phone: Path, file: str, reading: str | Path | None) -> None:
    put(phone, f"{SUPPLY}/{file}", reading)
    assert watts(phone) == {}


def test_an_older_pi_has_no_rails(tmp_path: Path) -> None:
    """Its firmware answers that it does not know the question."""
    put(tmp_path, "usr/bin/vcgencmd", "#!/bin/sh\necho error=1 'error_msg=\"Command not registered\"'")
    assert watts(tmp_path) == {}


def test_the_packages_are_added(pc: Path) -> None:
    """Their parts are in them; the first reading is 0, and it is an energy."""
    found = only(pc)
    first = found.read()
    put(pc, f"{RAPL}:0/energy_uj", "3000000")
    put(pc, f"{RAPL}:1/energy_uj", "1500000")
    assert (first.counted_joules, found.read().counted_joules, found.read().watts) == (0.0, 2.5, None)


def test_a_counter_that_begins_again_goes_on(pc: Path) -> None:
    put(pc, f"{RAPL}:0/energy_uj", str(FULL_UJ - 400_000))
    found = only(pc)
    put(pc, f"{RAPL}:0/energy_uj", "600000")
    assert found.read().counted_joules == pytest.approx(1.0)


def test_a_counter_that_goes_back_without_an_end_is_not_measured(pc: Path) -> None:
    """Without its range nobody knows how much has passed, then or later."""
    found = only(pc)
    put(pc, f"{RAPL}:0/max_energy_range_uj", UNREADABLE)
    for energy in ("5", "9000000"):
        put(pc, f"{RAPL}:0/energy_uj", energy)
        assert found.read().counted_joules is None


@pytest.mark.parametrize("energy", ["-1", "", "lots", UNREADABLE])
def test_a_counter_that_cannot_be_read_is_not_measured(pc: Path, energy: str | Path) -> None:
    """One of two is not the machine; users other than root read none."""
    put(pc, f"{RAPL}:1/energy_uj", energy)
    assert find_power_sensors(pc) == ()


def test_a_counter_of_the_platform_is_taken_alone(pc: Path) -> None:
    put(pc, f"{RAPL}:2/name", "psys")
    put(pc, f"{RAPL}:2/energy_uj", "7")
    found = only(pc)
    put(pc, f"{RAPL}:0/energy_uj", "3000000")
    put(pc, f"{RAPL}:2/energy_uj", "500007")
    assert found.read().counted_joules == 0.5
