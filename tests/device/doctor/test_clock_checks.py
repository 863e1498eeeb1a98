"""What a doctor says of governors and of bounds of clocks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.conditions import Conditions
from perfsuite.device.doctor.examination import examine
from perfsuite.device.doctor.gathering import Facts, gather, python_words
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target

from .device_facts import INSTALLED, STATE, facts, found, grades

HOST = find_profile("host", folders=())


def gathered(words: Sequence[str]) -> Facts:
    """The facts of this machine, whose suite is asked by these words."""
    return gather(open_target(Reach()), HOST, words, here=INSTALLED, model_bytes=None)


def test_this_machine_tells_all() -> None:
    """The host has a suite, a clock that is right, and two looks at its processors."""
    found = gathered(python_words(HOST, Path(sys.executable)))
    assert found.suite is not None, found.suite_problem
    assert found.suite.cache_free_bytes > 0
    assert (found.link_problem, found.clock_difference_s) == (None, 0.0)
    assert found.readings.text("cpu_ticks2") is not None


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["/no/such/python"], "is not there (no /no/such/python)"),
        (["sh", "-c", "echo ImportError: no numpy >&2; exit 1"], "does not run: ImportError: no numpy"),
        (["sh", "-c", """echo '{"lock": null}'"""], "it is of another version than the suite here"),
    ],
)
def test_a_device_without_this_suite_is_told(words: list[str], problem: str) -> None:
    """A shell that answers is not a suite that does; a broken one fails in its last words."""
    found = gathered(words)
    assert (found.suite, found.suite_problem) == (None, problem)


def test_a_device_out_of_reach_is_a_fact() -> None:
    """Nobody listens on the port: the facts say so, and hold nothing else."""
    bench = replace(HOST, reach=Reach(way="ssh", address="127.0.0.1", port=9))
    words = python_words(bench, Path(sys.executable))
    assert words == ("~/.local/share/perfsuite/venv/bin/python",)
    found = gather(open_target(bench.reach), bench, words, here=INSTALLED, model_bytes=None)
    assert found.link_problem is not None
    assert "refused" in found.link_problem
    assert found.suite is None


LOCK = LockOwner.here(user="ann", host="desk", run_id="r1", purpose="pytest --device=bench")


def test_a_device_out_of_reach_is_all_that_is_told() -> None:
    """The link's own words say what was seen and what to do; nothing else is known."""
    problem = "connection refused (bench port 22); nothing listens there: is sshd running?"
    (finding,) = examine(facts(link_problem=problem))
    assert (finding.what, finding.grade.value) == ("reach", "fail")
    assert finding.seen == "connection refused (bench port 22)"
    assert finding.mend == "nothing listens there: is sshd running?"


def test_a_device_in_good_order_has_nothing_to_mend() -> None:
    """Nothing fails and nothing warns, and no line asks for anything."""
    assert set(grades().values()) == {"ok"}
    assert {each.mend for each in examine(facts())} == {""}


def test_a_missing_or_another_suite_is_mended_by_setup() -> None:
    """Without a suite nothing can be measured; with other files of the same version results may differ."""
    missing = found("suite", suite=None, suite_problem="is not there")
    assert (missing.grade.value, missing.mend) == ("fail", "perfsuite devices setup bench")
    assert not {"llama.cpp", "lock", "disk", "OpenCL", "eBPF"} & set(grades(suite=None, suite_problem="is not there"))
    older = grades(suite=replace(STATE, installed=replace(INSTALLED, plan_schema=1)))
    assert (older["suite"], older["llama.cpp"]) == ("fail", "ok")
    assert grades(here_digest="d2")["suite"] == "warn"
    without = replace(INSTALLED, engine_build_id=None, engine_problem="no libllama")
    engine = found("llama.cpp", suite=replace(STATE, installed=without))
    assert (engine.grade.value, engine.mend) == ("fail", "perfsuite devices setup bench --force")


@pytest.mark.parametrize(
    ("problem", "seen", "mend"),
    [
        (
            "LLAMA_CPP_LIB_PATH: /opt/llama: is not a folder; expected a checkout",
            "LLAMA_CPP_LIB_PATH: /opt/llama: is not a folder",
            "expected a checkout",
        ),
        ("/opt/llama: no llama.h near it", "/opt/llama: no llama.h near it", "install the suite here anew: "),
    ],
)
def test_this_machine_is_mended_without_setup(problem: str, seen: str, mend: str) -> None:
    """Setup refuses the machine that it runs on: nothing that it must be asked to do names it."""
    local = {"reach": Reach()}
    missing = found("suite", profile=local, suite=None, suite_problem="does not run")
    without = replace(STATE, installed=replace(INSTALLED, engine_build_id=None, engine_problem=problem))
    engine = found("llama.cpp", profile=local, suite=without)
    assert (engine.seen, engine.grade.value) == (seen, "fail")
    assert engine.mend.startswith(mend)
    assert "devices setup" not in engine.mend + missing.mend


LEFT = replace(STATE, restore_file="/home/pi/.cache/perfsuite/device/restore.json")


@pytest.mark.parametrize(
    ("what", "facts", "grade"),
    [
        ("disk", {}, "ok"),
        ("disk", {"suite": replace(STATE, cache_free_bytes=1_000_000_000)}, "fail"),
        ("OpenCL", {}, "ok"),
        ("OpenCL", {"profile": {"opencl_platform": "QUALCOMM"}}, "fail"),
        ("leftovers", {"suite": LEFT}, "warn"),
        ("leftovers", {"suite": replace(LEFT, lock=LOCK)}, None),
    ],
)
def test_a_finding_has_its_grade(what: str, facts: dict[str, Any], grade: str | None) -> None:
    """Room is for model and caches; OpenCL counts where the profile asks for it; a run's own file is no leftover."""
    assert grades(**facts).get(what) == grade


def test_what_would_disturb_is_not_looked_at() -> None:
    """Beside a run OpenCL and eBPF were not asked: a line says so, and none says that there is nothing."""
    busy = replace(STATE, is_busy=True, opencl_problem=None, lock=LOCK)
    not_looked = "not looked at: that would disturb who has the device"
    for what, grade in (("OpenCL", "warn"), ("eBPF", "ok")):
        finding = found(what, profile={"opencl_platform": "QUALCOMM"}, suite=busy)
        assert (finding.grade.value, finding.seen) == (grade, not_looked)


def test_a_lock_is_told_with_its_owner() -> None:
    """A run that is under way is waited for, or ended by hand."""
    running = found("lock", suite=replace(STATE, lock=LOCK))
    assert running.grade.value == "warn"
    assert running.seen.startswith("held by ann from desk (pytest --device=bench)")
    assert "perfsuite devices unlock bench --force" in running.mend


@pytest.mark.parametrize(
    ("difference_s", "lines", "grade", "seen"),
    [
        (1.0, (), "ok", "+1 s from this machine's"),
        (-86400.0, (), "warn", "-86400 s from this machine's"),
        (0.0, ("clock_synchronised = yes",), "ok", "+0 s from this machine's, synchronised"),
        (0.0, ("clock_synchronised = no",), "ok", "+0 s from this machine's, not synchronised"),
    ],
)
def test_a_clock_that_is_off_is_told_with_the_difference(
    difference_s: float, lines: tuple[str, ...], grade: str, seen: str
) -> None:
    """A difference of a second cannot be distinguished from none; whether it is synchronised is stated if known."""
    finding = found("clock", *lines, clock_difference_s=difference_s)
    assert (finding.grade.value, finding.seen) == (grade, seen)


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
    """Phones save power when the battery is low; a charger ends that."""
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


POLICY = "/sys/devices/system/cpu/cpufreq/policy0"
CLOCKED = (
    f"{POLICY}/related_cpus = 0 1 2 3",
    f"{POLICY}/scaling_governor = schedutil",
    f"{POLICY}/scaling_available_governors = schedutil performance",
    f"{POLICY}/cpuinfo_max_freq = 2400000",
    f"{POLICY}/scaling_max_freq = 2400000",
    "user = pi",
)
SETTABLE = f"writable = {POLICY}/scaling_governor"
STEADY = Conditions(governor="performance")


def test_a_governor_that_may_be_set_is_in_order() -> None:
    """The run sets it, whatever is set now; one that is not offered fails, for no run could hold it."""
    assert grades(*CLOCKED, SETTABLE, conditions=STEADY)["governor"] == "ok"
    finding = found("governor", *CLOCKED, conditions=Conditions(governor="userspace"))
    assert (finding.grade.value, "offered are schedutil, performance" in finding.seen) == ("fail", True)


def test_a_governor_that_may_not_be_set_comes_with_the_commands() -> None:
    """The line has the command for once, and the rule for good."""
    finding = found("governor", *CLOCKED, conditions=STEADY)
    assert finding.grade.value == "warn"
    assert "which pi may not set" in finding.seen
    assert "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor" in finding.mend
    assert "/etc/udev/rules.d/60-perfsuite.rules" in finding.mend


def test_a_machine_without_clocks_is_told() -> None:
    """A virtual machine has no governor; that is bad only where one is asked for."""
    virtual = "/sys/devices/system/cpu/online = 0-1"
    assert grades(virtual)["governor"] == "ok"
    assert grades(virtual, conditions=STEADY)["governor"] == "warn"
    assert grades(*CLOCKED)["governor"] == "warn"


def test_bounds_below_what_processors_can_do_are_told() -> None:
    """Heat and users lower the upper bound; the command restores it."""
    assert grades(*CLOCKED)["clocks"] == "ok"
    lowered = [line.replace("scaling_max_freq = 2400000", "scaling_max_freq = 1200000") for line in CLOCKED]
    finding = found("clocks", *lowered)
    assert (finding.grade.value, finding.seen) == ("warn", "processors from 0 on are bound to 1.20 GHz, they can 2.40")
    assert f"echo 2400000 | sudo tee {POLICY}/scaling_max_freq" in finding.mend


def test_boost_is_told_with_the_way_to_turn_it_off() -> None:
    """A clock above the sustained one depends on heat."""
    for path, is_on, off in (("cpufreq/boost", 1, 0), ("intel_pstate/no_turbo", 0, 1)):
        finding = found("boost", f"/sys/devices/system/cpu/{path} = {is_on}")
        assert (finding.grade.value, finding.mend) == ("warn", f"echo {off} | sudo tee /sys/devices/system/cpu/{path}")
        assert "boost" not in grades(f"/sys/devices/system/cpu/{path} = {off}")


def test_the_gpus_governor_is_looked_at_where_it_is_asked_for() -> None:
    """Without a GPU whose clock can be seen, asking for a governor of it is without effect."""
    gpu = "/sys/class/devfreq/3d00000.gpu"
    lines = (f"{gpu}/governor = simple_ondemand", f"{gpu}/available_governors = performance simple_ondemand")
    asked = Conditions(gpu_governor="performance")
    assert "GPU's governor" not in grades(*lines)
    assert grades(conditions=asked)["GPU's governor"] == "warn"
    assert grades(*lines, f"writable = {gpu}/governor", conditions=asked)["GPU's governor"] == "ok"
    kept = found("GPU's governor", *lines, conditions=asked)
    assert (kept.grade.value, kept.mend) == ("warn", f"echo performance | sudo tee {gpu}/governor")
    other = found("GPU's governor", *lines, conditions=Conditions(gpu_governor="userspace"))
    assert other.grade.value == "fail"
    assert other.seen.endswith("offered are performance, simple_ondemand")
