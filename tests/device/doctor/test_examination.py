"""What a doctor finds out about a device, and what it says of each fact."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.doctor.examination import examine
from perfsuite.device.doctor.gathering import bundle_state, gather
from perfsuite.device.machine import Conditions
from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach
from perfsuite.device.setup.bundle_scripts import OLD_SETUP
from perfsuite.device.target.opening import open_target
from perfsuite.errors import DeviceError
from perfsuite.records.bundle import BundledEngine, BundleManifest
from tests.conftest import Golden
from tests.device_lock import owner_called

from .device_facts import INSTALLED, STATE, facts

HOST = find_profile("host", folders=())


def test_this_machine_tells_all() -> None:
    """The host has a clock that is right, and two looks at its processors; its suite is asked for here."""
    target = open_target(Reach())
    found = gather(target, HOST, here=INSTALLED, own_state=lambda _: STATE, model_bytes=None)
    assert (found.suite, found.suite_problem) == (STATE, None)
    assert (found.link_problem, found.clock_difference_s) == (None, 0.0)
    assert found.readings.text("cpu_ticks2") is not None


def test_a_device_out_of_reach_is_a_fact() -> None:
    bench = replace(HOST, reach=Reach(way="ssh", address="127.0.0.1", port=9))
    found = gather(open_target(bench.reach), bench, here=INSTALLED, own_state=lambda _: STATE, model_bytes=None)
    assert found.link_problem is not None
    assert "refused" in found.link_problem
    assert found.suite is None


@pytest.mark.parametrize(("folder", "seen"), [("venv", OLD_SETUP), (".", "is not there (no ")])
def test_a_device_without_a_bundle_says_how_it_was_set_up(tmp_path: Path, folder: str, seen: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    with pytest.raises(DeviceError) as told:
        bundle_state(open_target(Reach()), str(tmp_path), None)
    assert str(told.value).startswith(seen)


def test_a_device_in_good_order_has_nothing_to_mend() -> None:
    assert {(each.grade.value, each.mend) for each in examine(facts())} == {("ok", "")}


def shown(note: str, whats: str, *lines: str, **changed: Any) -> str:
    """Return the findings about a device, '-' where there are none, and their remedies."""
    found = {each.what: each for each in examine(facts(*lines, **changed))}
    told = []
    for what in whats.split(", "):
        each = found.get(what)
        words = f"{each.grade.value}, {each.seen}" + (f" => {each.mend}" if each.mend else "") if each else "-"
        told.append(f"{what} ({note}): {words}")
    return "\n".join(told)


def unfit(**changed: Any) -> Any:
    return replace(STATE, installed=replace(INSTALLED, **changed))


LOCK = owner_called("ann", run_id="r1", purpose="pytest --device=bench")
LEFT = replace(STATE, restore_file="/home/pi/.cache/perfsuite/device/restore.json")
BUSY = replace(STATE, is_busy=True, opencl_problem=None, lock=LOCK)
LLAMA = "LLAMA_CPP_LIB_PATH: /opt/llama: is not a folder; expected a checkout"
ASKED = {"opencl_platform": "QUALCOMM"}
GONE: dict[str, Any] = {"suite": None, "suite_problem": "is not there"}
LOCAL: dict[str, Any] = {"profile": {"reach": Reach()}}
BUNDLE = BundleManifest(
    suite_version="0.1.0",
    plan_schema=2,
    digest="d",
    target="aarch64-linux-gnu",
    machines=("aarch64",),
    processor="armv8-a",
    compiler="none",
    flags=(),
    settings=(),
    llama="none",
    llama_digest="0",
    engine=BundledEngine(library_dir="engine", include_dirs=(), build_id="0", has_blas=False),
    least_glibc="2.34",
    files=(),
)


def bundled(least: str | None) -> Any:
    return replace(STATE, bundle=replace(BUNDLE, least_glibc=least))


def test_the_suite_is_told_with_what_mends_it(golden: Golden) -> None:
    """Setup refuses the machine that it runs on, so that nothing names it there; what would disturb is not asked."""
    unplugged = "connection refused (bench port 22); nothing listens there: is sshd running?"
    no_engine = unfit(engine_build_id=None, engine_problem="no libllama")
    text = [
        shown("out of reach", "reach, suite", link_problem=unplugged),
        shown("gone", "suite, llama.cpp, lock, disk, OpenCL, eBPF", **GONE),
        shown("older", "suite, llama.cpp", suite=unfit(plan_schema=1)),
        shown("no engine", "llama.cpp", suite=no_engine),
        shown("here, broken", "suite", **LOCAL, suite=None, suite_problem="does not run"),
        *(
            shown("here, no engine", "llama.cpp", **LOCAL, suite=unfit(engine_build_id=None, engine_problem=problem))
            for problem in (LLAMA, "/opt/llama: no llama.h near it")
        ),
        shown("usual", "disk, OpenCL, leftovers"),
        shown("full", "disk", suite=replace(STATE, cache_free_bytes=1_000_000_000)),
        shown("asked for", "OpenCL", profile=ASKED),
        shown("killed", "leftovers", suite=LEFT),
        shown("of a run", "leftovers, lock", suite=replace(LEFT, lock=LOCK)),
        shown("beside a run", "OpenCL, eBPF", profile=ASKED, suite=BUSY),
        shown("a second", "clock", clock_difference_s=1.0),
        shown("a day", "clock", clock_difference_s=-86400.0),
        *(shown(each, "clock", f"clock_synchronised = {each}") for each in ("yes", "no")),
        *(
            shown(f"{libc}, {least}", "C library", "machine = aarch64", f"libc = {libc}", suite=bundled(least))
            for libc, least in (("glibc 2.36", "2.34"), ("glibc 2.31", "2.34"), ("musl", "2.34"), ("musl", None))
        ),
        shown("no bundle", "C library", "libc = glibc 2.36"),
        shown("not known", "C library"),
    ]
    varying = re.compile(r"since \S+?(?=[,;]|$)|process \d+|account \S+|kill \d+|" + re.escape(sys.executable))
    golden("device/doctor-suite.txt", varying.sub(lambda each: each[0].split()[0], "\n".join(text)) + "\n")


ZONE = "/sys/class/thermal/thermal_zone0"
WARM = (f"{ZONE}/type = cpu-thermal", f"{ZONE}/temp = 61000")
HIDDEN = "/sys/class/thermal/thermal_zone1/type = gpu-thermal"
COOLER = "/sys/class/thermal/cooling_device1"
BATTERY = "/sys/class/power_supply/battery"
DRAINED = (f"{BATTERY}/type = Battery", f"{BATTERY}/status = Discharging", f"{BATTERY}/capacity = 20")
SWAP = (
    "/proc/meminfo = SwapTotal: 1000000 kB",
    "/proc/swaps = Filename Type Size Used Priority",
    "/proc/swaps = /dev/zram0 partition 1000000 500000 100",
)
LOAD = (
    "/sys/devices/system/cpu/online = 0-1",
    "cpu_ticks1 = cpu 1000 0 0 1000 0 0 0 0 0 0",
    "cpu_ticks2 = cpu 1100 0 0 1090 0 0 0 10 0 0",
    "process_ticks1 = 7 (odd) name) R 1 7 7 0 -1 0 0 0 0 0 500 0 0 0",
    "process_ticks2 = 7 (odd) name) R 1 7 7 0 -1 0 0 0 0 0 595 0 0 0",
    "process_ticks2 = nonsense",
)


def heated(least_celsius: float | None, *zones: str) -> Conditions:
    return Conditions(start_below_celsius=least_celsius, thermal_zones=zones)


def test_what_disturbs_is_told_with_what_ends_it(golden: Golden) -> None:
    """Firmware, cooling devices and Android tell of throttling, each in its own way; a fan holds nothing back."""
    slowed = (f"{COOLER}/cur_state = 3", f"{COOLER}/max_state = 11")
    text = [
        shown("gated", "temperature", *WARM, conditions=heated(55.0)),
        shown("misspelt", "temperature", *WARM, conditions=heated(55.0, "soc-thermal")),
        shown("not gated", "temperature", *WARM),
        shown("one hidden", "thermal zones", *WARM, HIDDEN),
        shown("one hidden that counts", "thermal zones", *WARM, HIDDEN, conditions=heated(None, "gpu-thermal")),
        shown("all hidden", "thermal zones", WARM[0]),
        shown("nothing known", "throttling, thermal zones, battery, memory, swap, load, steal"),
        shown("firmware", "throttling", "throttled = throttled=0x50004"),
        shown("a processor", "throttling", f"{COOLER}/type = cpufreq-cpu4", *slowed),
        shown("Android", "throttling", "thermal_status = Thermal Status: 2"),
        shown("fan, and once", "throttling", f"{COOLER}/type = pwm-fan", *slowed, "throttled = throttled=0x50000"),
        shown("low", "battery", *DRAINED, conditions=Conditions(least_battery_ratio=0.3)),
        shown("draining", "battery", *DRAINED),
        shown("charging", "battery", DRAINED[0], f"{BATTERY}/status = Charging"),
        *(shown(f"{kb} kB", "memory", f"/proc/meminfo = MemAvailable: {kb} kB") for kb in (4_000_000, 1_000_000)),
        *(shown(f"{kb} kB", "swap", *SWAP, f"/proc/meminfo = SwapFree: {kb} kB") for kb in (500_000, 990_000)),
        shown("two looks", "load, steal", *LOAD),
    ]
    golden("device/doctor-disturbances.txt", "\n".join(text) + "\n")


CPUS = "/sys/devices/system/cpu"
POLICY = f"{CPUS}/cpufreq/policy0"
CLOCKED = (
    f"{POLICY}/related_cpus = 0 1 2 3",
    f"{POLICY}/scaling_governor = schedutil",
    f"{POLICY}/scaling_available_governors = schedutil performance",
    f"{POLICY}/cpuinfo_max_freq = 2400000",
    f"{POLICY}/scaling_max_freq = 2400000",
    "user = pi",
)
LOWERED = tuple(line.replace("scaling_max_freq = 2400000", "scaling_max_freq = 1200000") for line in CLOCKED)
STEADY = {"conditions": Conditions(governor="performance")}
GPU = "/sys/class/devfreq/3d00000.gpu"
GPU_GOVERNORS = (f"{GPU}/governor = simple_ondemand", f"{GPU}/available_governors = performance simple_ondemand")
FAST_GPU = {"conditions": Conditions(gpu_governor="performance")}
BIG_AND_LITTLE = (
    f"{CPUS}/cpufreq/policy0/related_cpus = 0 1 2 3",
    f"{CPUS}/cpufreq/policy0/cpuinfo_max_freq = 1800000",
    f"{CPUS}/cpufreq/policy4/related_cpus = 4 5 7",
    f"{CPUS}/cpufreq/policy4/cpuinfo_max_freq = 2700000",
)
LOADER = "opencl_loader = /usr/lib/libOpenCL.so.1"
LAYERED = "opencl_layers = /usr/lib/libOpenCL.so.1"
ICD = "/etc/OpenCL/vendors/mali.icd = libmali.so"


def test_clocks_processors_and_drivers_are_told_with_what_mends_them(golden: Golden) -> None:
    """A governor that is not offered fails, for no run could hold it; workers on both kinds wait for the slower."""
    failed = replace(STATE, backend_problem="kernel compile error; update the driver")
    text = [
        shown("settable", "governor", *CLOCKED, f"writable = {POLICY}/scaling_governor", **STEADY),
        shown("not offered", "governor", *CLOCKED, conditions=Conditions(governor="userspace")),
        shown("not settable", "governor", *CLOCKED, **STEADY),
        shown("not asked", "governor, clocks", *CLOCKED),
        shown("a virtual machine", "governor, processors", f"{CPUS}/online = 0-1"),
        shown("a virtual machine, asked", "governor", f"{CPUS}/online = 0-1", **STEADY),
        shown("lowered", "clocks", *LOWERED),
        *(
            shown(f"{path} {state}", "boost", f"{CPUS}/{path} = {state}")
            for path in ("cpufreq/boost", "intel_pstate/no_turbo")
            for state in (0, 1)
        ),
        shown("not asked", "GPU's governor", *GPU_GOVERNORS),
        shown("none", "GPU's governor", **FAST_GPU),
        shown("settable", "GPU's governor", *GPU_GOVERNORS, f"writable = {GPU}/governor", **FAST_GPU),
        shown("not settable", "GPU's governor", *GPU_GOVERNORS, **FAST_GPU),
        shown("not offered", "GPU's governor", *GPU_GOVERNORS, conditions=Conditions(gpu_governor="userspace")),
        shown("both kinds", "processors", *BIG_AND_LITTLE),
        *(
            shown(f"{used}", "processors", *BIG_AND_LITTLE, conditions=Conditions(processors=used))
            for used in ((4, 5, 7), (0, 1))
        ),
        shown("nothing known", "processors, GPU's clock, OpenCL's loader, OpenCL's drivers, OpenCL backend"),
        shown("shown", "GPU's clock", f"{GPU}/governor = x", f"{GPU}/cur_freq = 587000000"),
        shown("hidden", "GPU's clock", f"{GPU}/governor = x"),
        shown("Qualcomm's, hidden", "GPU's clock", "/sys/class/kgsl/kgsl-3d0/gpu_model = Adreno643"),
        shown("with layers", "OpenCL's loader", LOADER, LAYERED, profile=ASKED),
        shown("without layers", "OpenCL's loader", LOADER, profile=ASKED),
        shown("not asked", "OpenCL's loader", LOADER),
        shown("none", "OpenCL's loader, OpenCL backend", profile=ASKED),
        shown("failed", "OpenCL backend", profile=ASKED, suite=failed),
        shown("failed, not asked", "OpenCL backend", suite=failed),
        shown("there", "OpenCL's drivers", ICD, "opencl_driver = libmali.so"),
        shown("lost", "OpenCL's drivers", ICD),
    ]
    golden("device/doctor-hardware.txt", "\n".join(text) + "\n")
