"""What a doctor says of heat, batteries, memory and load."""

from __future__ import annotations

from perfsuite.device.conditions import Conditions
from perfsuite.device.doctor.rest_checks import (
    check_battery,
    check_heat,
    check_load,
    check_memory,
    check_throttling,
)

from .device_facts import facts, told

ZONE = "/sys/class/thermal/thermal_zone0"
WARM = (f"{ZONE}/type = cpu-thermal", f"{ZONE}/temp = 61000")


def test_a_hot_device_is_told_beside_its_gate() -> None:
    """A run would wait for it to cool."""
    (found,) = check_heat(facts(*WARM, conditions=Conditions(start_below_celsius=55.0)))
    assert (found.grade.value, found.seen) == ("warn", "61 degrees (cpu-thermal), a run begins below 55")
    assert told(check_heat(facts(*WARM))) == [("temperature", "ok")]


def test_a_gate_over_zones_that_are_not_there_is_told() -> None:
    """A misspelt zone would let every run begin."""
    conditions = Conditions(start_below_celsius=55.0, thermal_zones=("soc-thermal",))
    (found,) = check_heat(facts(*WARM, conditions=conditions))
    assert found.grade.value == "warn"
    assert "none of soc-thermal can be read" in found.seen


def test_throttling_is_told_by_firmware_cooling_and_android() -> None:
    """Each says it in its own way; what is cool says nothing."""
    cooler = "/sys/class/thermal/cooling_device1"
    assert told(check_throttling(facts())) == [("throttling", "ok")]
    for lines in (
        ("throttled = throttled=0x50004",),
        (f"{cooler}/type = cpufreq-cpu4", f"{cooler}/cur_state = 3", f"{cooler}/max_state = 11"),
        ("thermal_status = Thermal Status: 2",),
    ):
        assert told(check_throttling(facts(*lines))) == [("throttling", "warn")]
    fan = (f"{cooler}/type = pwm-fan", f"{cooler}/cur_state = 3", "throttled = throttled=0x50000")
    assert told(check_throttling(facts(*fan))) == [("throttling", "ok")]


def test_a_drained_battery_fails_below_the_profiles_least_charge() -> None:
    """Phones save power when little is left; a charger mends that."""
    bat = "/sys/class/power_supply/battery"
    lines = (f"{bat}/type = Battery", f"{bat}/status = Discharging", f"{bat}/capacity = 20")
    assert told(check_battery(facts(*lines, conditions=Conditions(least_battery_ratio=0.3)))) == [("battery", "fail")]
    assert told(check_battery(facts(*lines))) == [("battery", "warn")]
    assert told(check_battery(facts(lines[0], f"{bat}/status = Charging"))) == [("battery", "ok")]
    assert told(check_battery(facts())) == []


def test_the_default_model_has_to_fit_into_what_is_free() -> None:
    """Weights, a third more, and the program itself."""
    assert told(check_memory(facts("/proc/meminfo = MemAvailable: 4000000 kB"))) == [("memory", "ok")]
    assert told(check_memory(facts("/proc/meminfo = MemAvailable: 1000000 kB"))) == [("memory", "fail")]


def test_used_swap_is_told_with_where_it_is() -> None:
    """zram is swap, too."""
    lines = ("MemAvailable: 4000000 kB", "SwapTotal: 1000000 kB", "SwapFree: 500000 kB")
    swaps = ("/proc/swaps = Filename Type Size Used Priority", "/proc/swaps = /dev/zram0 partition 1000000 500000 100")
    found = list(check_memory(facts(*(f"/proc/meminfo = {line}" for line in lines), *swaps)))
    assert told(found) == [("memory", "ok"), ("swap", "warn")]
    assert "(/dev/zram0)" in found[1].seen


def test_load_is_told_with_the_programs_that_cause_it() -> None:
    """Of two looks a second apart, what has used a processor meanwhile; programs' names may hold anything."""
    lines = (
        "/sys/devices/system/cpu/online = 0-1",
        "cpu_ticks1 = cpu 1000 0 0 1000 0 0 0 0 0 0",
        "cpu_ticks2 = cpu 1100 0 0 1090 0 0 0 10 0 0",
        "process_ticks1 = 7 (odd) name) R 1 7 7 0 -1 0 0 0 0 0 500 0 0 0",
        "process_ticks2 = 7 (odd) name) R 1 7 7 0 -1 0 0 0 0 0 595 0 0 0",
        "process_ticks2 = nonsense",
    )
    load, steal = check_load(facts(*lines))
    assert (load.grade.value, load.seen) == ("warn", "50% of the processors busy (odd) name 95% of one)")
    assert load.mend.startswith("end it: kill 7;")
    assert (steal.what, steal.seen) == ("steal", "5.0% of the time was the hypervisor's")
    assert told(check_load(facts())) == []
