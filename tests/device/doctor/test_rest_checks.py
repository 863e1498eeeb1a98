"""What a doctor says of heat, batteries, memory and load."""

from __future__ import annotations

import pytest

from perfsuite.device.conditions import Conditions

from .device_facts import found, grades

ZONE = "/sys/class/thermal/thermal_zone0"
WARM = (f"{ZONE}/type = cpu-thermal", f"{ZONE}/temp = 61000")
COOLER = "/sys/class/thermal/cooling_device1"
BATTERY = "/sys/class/power_supply/battery"


@pytest.mark.parametrize(
    ("zones", "seen"),
    [
        ((), "61 degrees (cpu-thermal), a run begins below 55"),
        (("soc-thermal",), "none of soc-thermal can be read, and a run is to begin below 55"),
    ],
)
def test_a_hot_device_is_told_beside_its_gate(zones: tuple[str, ...], seen: str) -> None:
    """A run would wait for it to cool; with a misspelt zone every run would begin."""
    finding = found("temperature", *WARM, conditions=Conditions(start_below_celsius=55.0, thermal_zones=zones))
    assert (finding.grade.value, finding.seen) == ("warn", seen)
    assert grades(*WARM)["temperature"] == "ok"


@pytest.mark.parametrize(
    ("lines", "grade"),
    [
        ((), "ok"),
        (("throttled = throttled=0x50004",), "warn"),
        ((f"{COOLER}/type = cpufreq-cpu4", f"{COOLER}/cur_state = 3", f"{COOLER}/max_state = 11"), "warn"),
        (("thermal_status = Thermal Status: 2",), "warn"),
        ((f"{COOLER}/type = pwm-fan", f"{COOLER}/cur_state = 3", "throttled = throttled=0x50000"), "ok"),
    ],
)
def test_throttling_is_told_by_firmware_cooling_and_android(lines: tuple[str, ...], grade: str) -> None:
    """Each says it in its own way; what is cool says nothing."""
    assert grades(*lines)["throttling"] == grade


def test_a_drained_battery_fails_below_the_profiles_least_charge() -> None:
    """Phones save power when little is left; a charger mends that."""
    lines = (f"{BATTERY}/type = Battery", f"{BATTERY}/status = Discharging", f"{BATTERY}/capacity = 20")
    assert grades(*lines, conditions=Conditions(least_battery_ratio=0.3))["battery"] == "fail"
    assert grades(*lines)["battery"] == "warn"
    assert grades(lines[0], f"{BATTERY}/status = Charging")["battery"] == "ok"
    assert "battery" not in grades()


def test_the_default_model_has_to_fit_into_what_is_free() -> None:
    """Weights, a third more, and the program itself."""
    assert grades("/proc/meminfo = MemAvailable: 4000000 kB")["memory"] == "ok"
    assert grades("/proc/meminfo = MemAvailable: 1000000 kB")["memory"] == "fail"
    assert "memory" not in grades()


def test_used_swap_is_told_with_where_it_is() -> None:
    """zram is swap, too."""
    lines = ("/proc/meminfo = SwapTotal: 1000000 kB", "/proc/meminfo = SwapFree: 500000 kB")
    swaps = ("/proc/swaps = Filename Type Size Used Priority", "/proc/swaps = /dev/zram0 partition 1000000 500000 100")
    finding = found("swap", *lines, *swaps)
    assert (finding.grade.value, "(/dev/zram0)" in finding.seen) == ("warn", True)
    assert "swap" not in grades(lines[0], "/proc/meminfo = SwapFree: 990000 kB", *swaps)


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
    load = found("load", *lines)
    assert (load.grade.value, load.seen) == ("warn", "50% of the processors busy (odd) name 95% of one)")
    assert load.mend.startswith("end it: kill 7;")
    assert found("steal", *lines).seen == "5.0% of the time was the hypervisor's"
    assert not {"load", "steal"} & set(grades())
