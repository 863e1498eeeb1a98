"""What a doctor says of governors and of bounds of clocks."""

from __future__ import annotations

from perfsuite.device.conditions import Conditions

from .device_facts import found, grades

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
    """Without a GPU whose clock can be seen, asking for a governor of it is in vain."""
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
