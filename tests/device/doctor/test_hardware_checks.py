"""What a doctor says of processors, sensors, the C library and OpenCL's parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.device.conditions import Conditions
from perfsuite.records.bundle import BundledEngine, BundleManifest

from ..probe.device_trees import surveyed
from .device_facts import STATE, facts, found, grades

_CPUS = "/sys/devices/system/cpu"
BIG_AND_LITTLE = (
    f"{_CPUS}/cpufreq/policy0/related_cpus = 0 1 2 3",
    f"{_CPUS}/cpufreq/policy0/cpuinfo_max_freq = 1800000",
    f"{_CPUS}/cpufreq/policy4/related_cpus = 4 5 7",
    f"{_CPUS}/cpufreq/policy4/cpuinfo_max_freq = 2700000",
)


def test_workers_on_both_kinds_of_processors_are_told() -> None:
    """A run over big and little ones waits for the little ones; the line has what the profile needs."""
    both = found("processors", *BIG_AND_LITTLE)
    assert (both.grade.value, both.seen) == (
        "warn",
        "big 4-5,7, little 0-3; workers use both, and wait for the slower ones",
    )
    assert both.mend == "processors = [4, 5, 7] in [conditions] of the profile"
    for chosen, told in (((4, 5, 7), "4-5,7"), ((0, 1), "0-1")):
        kept = found("processors", *BIG_AND_LITTLE, conditions=Conditions(processors=chosen))
        assert (kept.grade.value, kept.seen.endswith(f"workers use {told}")) == ("ok", True)
    assert found("processors", f"{_CPUS}/online = 0-1").seen.startswith("2, of which none is known to be smaller")
    assert "processors" not in grades()


_ZONES = "/sys/class/thermal/thermal_zone"
ZONES = (f"{_ZONES}0/type = cpu-thermal", f"{_ZONES}0/temp = 41000", f"{_ZONES}1/type = gpu-thermal")


def test_zones_that_cannot_be_read_are_told() -> None:
    """The types that can be read are named, those that cannot, and one that the profile counts and is not there."""
    assert found("thermal zones", *ZONES).seen == "1 of 2 can be read: cpu-thermal; not gpu-thermal"
    wrong = found("thermal zones", *ZONES, conditions=Conditions(thermal_zones=("gpu-thermal",)))
    assert (wrong.grade.value, wrong.seen) == (
        "warn",
        "1 of 2 can be read: cpu-thermal; not gpu-thermal; none is gpu-thermal",
    )
    assert "thermal_zones" in wrong.mend
    assert found("thermal zones", ZONES[0]).grade.value == "warn"
    assert "thermal zones" not in grades()


def test_a_gpus_clock_that_cannot_be_read_comes_with_the_command() -> None:
    gpu = "/sys/class/devfreq/3d00000.gpu"
    assert found("GPU's clock", f"{gpu}/governor = x", f"{gpu}/cur_freq = 587000000").seen == "3d00000.gpu at 587 MHz"
    hidden = found("GPU's clock", f"{gpu}/governor = x")
    assert (hidden.grade.value, hidden.mend) == ("warn", f"sudo chmod a+r {gpu}/cur_freq, or reach it as root")
    kgsl = found("GPU's clock", "/sys/class/kgsl/kgsl-3d0/gpu_model = Adreno643")
    assert (kgsl.grade.value, "chmod a+r /sys/class/kgsl/kgsl-3d0/gpuclk" in kgsl.mend) == ("warn", True)
    assert "GPU's clock" not in grades()


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


@pytest.mark.parametrize(
    ("libc", "least", "grade", "seen"),
    [
        ("glibc 2.36", "2.34", "ok", "glibc 2.36; the bundle needs glibc 2.34"),
        ("glibc 2.31", "2.34", "fail", "has glibc 2.31, the bundle needs 2.34"),
        ("musl", "2.34", "fail", "has musl, the bundle needs glibc 2.34"),
        ("musl", None, "ok", "musl; the bundle needs none: it brings its own"),
    ],
)
def test_the_c_library_is_held_against_what_the_bundle_needs(
    libc: str, least: str | None, grade: str, seen: str
) -> None:
    """One that is too old, or another, fails with the command that makes a bundle for it."""
    state = replace(STATE, bundle=replace(BUNDLE, least_glibc=least))
    finding = found("C library", "machine = aarch64", f"libc = {libc}", suite=state)
    assert (finding.grade.value, finding.seen) == (grade, seen)
    assert ("--compiler=zig" in finding.mend) == (grade == "fail")
    assert found("C library", f"libc = {libc}").seen == libc
    assert "C library" not in grades()


ASKED = {"opencl_platform": "QUALCOMM"}
LOADER = "opencl_loader = /usr/lib/libOpenCL.so.1"


def test_a_loader_that_reads_no_layers_is_told_where_opencl_is_asked_for() -> None:
    """Without layers nothing follows llama.cpp's commands; without a loader there is no OpenCL backend."""
    layered = found("OpenCL's loader", LOADER, "opencl_layers = /usr/lib/libOpenCL.so.1", profile=ASKED)
    assert (layered.grade.value, layered.seen) == ("ok", "/usr/lib/libOpenCL.so.1, which reads layers")
    plain = found("OpenCL's loader", LOADER, profile=ASKED)
    assert (plain.grade.value, "ocl-icd-libopencl1" in plain.mend) == ("warn", True)
    assert found("OpenCL's loader", LOADER).grade.value == "ok"
    assert found("OpenCL's loader", profile=ASKED).seen == "no libOpenCL.so where systems have it"
    assert "OpenCL's loader" not in grades()


def test_a_driver_that_is_not_there_is_named_with_what_names_it() -> None:
    """A file that a package has left behind lets the loader look for a library without effect."""
    icd = "/etc/OpenCL/vendors/mali.icd = libmali.so"
    assert found("OpenCL's drivers", icd, "opencl_driver = libmali.so").seen == "libmali.so"
    lost = found("OpenCL's drivers", icd)
    assert (lost.grade.value, lost.seen) == (
        "warn",
        "/etc/OpenCL/vendors/mali.icd names libmali.so, which is not there",
    )
    assert "OpenCL's drivers" not in grades()


def test_a_backend_whose_kernels_do_not_compile_is_told() -> None:
    """It is looked at where the profile asks for OpenCL; the driver's own words are what was seen."""
    assert found("OpenCL backend", profile=ASKED).seen == "its kernels compile"
    failed = replace(STATE, backend_problem="kernel compile error; update the driver")
    told = found("OpenCL backend", profile=ASKED, suite=failed)
    assert (told.grade.value, told.seen, told.mend) == ("warn", "kernel compile error", "update the driver")
    assert "OpenCL backend" not in grades(suite=failed)


def test_the_survey_looks_for_loaders_and_drivers(tmp_path: Path) -> None:
    """Loaders are read for the variable that names layers; drivers by path or by name are looked for."""
    root = tmp_path / "root"
    for path, text in (
        ("usr/lib/aarch64-linux-gnu/libOpenCL.so.1", "..OPENCL_LAYERS.."),
        ("vendor/lib64/libOpenCL.so", ".."),
        ("usr/lib/aarch64-linux-gnu/libmali.so", ""),
        ("etc/OpenCL/vendors/mali.icd", "libmali.so\n"),
        ("etc/OpenCL/vendors/pocl.icd", "/usr/lib/libpocl.so.2"),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    readings = surveyed("rubikpi", root)
    assert readings.all("opencl_loader") == ("/usr/lib/aarch64-linux-gnu/libOpenCL.so.1", "/vendor/lib64/libOpenCL.so")
    assert readings.all("opencl_layers") == ("/usr/lib/aarch64-linux-gnu/libOpenCL.so.1",)
    assert readings.all("opencl_driver") == ("libmali.so",)
    drivers = found("OpenCL's drivers", profile={}, readings=readings)
    assert drivers.seen == "/etc/OpenCL/vendors/pocl.icd names /usr/lib/libpocl.so.2, which is not there"
    assert facts(readings=readings).readings is readings
