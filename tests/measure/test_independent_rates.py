"""Rates of other programs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import IndependentRate, Resource
from perfsuite.measure import independent_rates as module
from perfsuite.measure.independent_rates import (
    absent_programs,
    blas_environment,
    clpeak_rates,
    likwid_rate,
    rates_on_device,
    rates_on_processor,
    stream_rates,
)
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import IndependentPlan
from perfsuite.testing.workers import replace_workers

from ..synthetic_opencl_backend import opencl_device
from .conftest import write_script

#: likwid-bench 5.2.2, ``-t load_avx -w N:64MB:2``.
LIKWID_OUTPUT = """\
LIKWID MICRO BENCHMARK
Test: load_avx
--------------------------------------------------------------------------------
Using 1 work groups
Using 2 threads
--------------------------------------------------------------------------------
Group: 0 Thread 0 Global Thread 0 running on hwthread 0 - Vector length 4000000 Offset 0
--------------------------------------------------------------------------------
Time:\t\t\t1.780839e+00 sec
MFlops/s:\t\t0.00
Data volume (Byte):\t131072000000
MByte/s:\t\t73601.28
"""

#: STREAM 5.10, built with OpenMP.
STREAM_OUTPUT = """\
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
Array size = 22369621 (elements), Offset = 0 (elements)
Number of Threads requested = 2
Number of Threads counted = 2
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           38344.8     0.015442     0.009334     0.024995
Scale:          39870.4     0.013253     0.008977     0.017413
Add:            35578.0     0.017477     0.015090     0.018778
Triad:          34291.7     0.018603     0.015656     0.027602
"""

#: clpeak 1.1.2, ``--global-bandwidth --compute-sp --xml-file``; the second device is the first with other numbers.
CLPEAK_OUTPUT = """\
<?xml version="1.0" encoding="utf-8"?>
<clpeak os="Linux x64">
  <platform name="Intel(R) OpenCL">
    <device name="AMD EPYC" driver_version="2026.22" compute_units="2" clock_frequency="0" clock_frequency_unit="MHz">
      <global_memory_bandwidth unit="gbps">
        <float>20.8894</float>
        <float2>15.3914</float2>
        <float16>32.1745</float16>
      </global_memory_bandwidth>
      <single_precision_compute unit="gflops">
        <float>32.2132</float>
        <float16>47.1931</float16>
      </single_precision_compute>
    </device>
  </platform>
  <platform name="Another">
    <device name="AMD EPYC" driver_version="1">
      <global_memory_bandwidth unit="gbps"><float>1</float></global_memory_bandwidth>
      <single_precision_compute unit="gflops"><float>2</float></single_precision_compute>
    </device>
  </platform>
</clpeak>
"""


def test_likwid() -> None:
    """likwid-bench names its benchmark, threads and 10⁶ bytes per second; its load is a read, its stream a triad."""
    rate = likwid_rate(LIKWID_OUTPUT)
    assert (rate.program, rate.resource, rate.kind) == ("likwid-bench", Resource.BANDWIDTH, "read")
    assert (rate.processor, rate.n_threads) == ("cpu", 2)
    assert rate.best_per_s == pytest.approx(73.60128e9)
    for test, kind in (("load", "read"), ("copy_avx", "copy"), ("copy", "copy"), ("stream_avx", "triad")):
        assert likwid_rate(LIKWID_OUTPUT.replace("load_avx", test)).kind == kind


_CLPEAK = partial(clpeak_rates, platform_name="Intel(R) OpenCL", device_name="AMD EPYC")


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (likwid_rate, LIKWID_OUTPUT.replace("load_avx", "peakflops"), "ran peakflops, expected one of load_avx"),
        (stream_rates, "Version: ImageMagick 6.9", r"stream: its output has no line like '\^Copy"),
        (_CLPEAK, CLPEAK_OUTPUT.replace('"gbps"', '"tbps"'), "no global_memory_bandwidth in gbps"),
        (_CLPEAK, CLPEAK_OUTPUT[:300], "its XML cannot be read"),
    ],
)
def test_what_is_not_theirs_is_refused(read: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        read(text)


def test_stream() -> None:
    """STREAM's best rates are in 10⁶ bytes per second of all arrays, on the threads that it counted, or on one."""
    copy, triad = stream_rates(STREAM_OUTPUT)
    assert (copy.program, copy.kind, copy.n_threads) == ("stream", "copy", 2)
    assert copy.best_per_s == pytest.approx(38.3448e9)
    assert (triad.kind, triad.best_per_s) == ("triad", pytest.approx(34.2917e9))
    without_threads = "\n".join(line for line in STREAM_OUTPUT.splitlines() if "Threads" not in line)
    assert [rate.n_threads for rate in stream_rates(without_threads)] == [1, 1]


def test_clpeak() -> None:
    """clpeak's best vector counts, of the device of the platform that was asked for."""
    bandwidth, arithmetic = _CLPEAK(CLPEAK_OUTPUT)
    assert (bandwidth.resource, bandwidth.kind, bandwidth.processor) == (Resource.BANDWIDTH, "read", "AMD EPYC")
    assert bandwidth.best_per_s == pytest.approx(32.1745e9)
    assert (arithmetic.resource, arithmetic.kind) == (Resource.COMPUTE, "fp32")
    assert arithmetic.best_per_s == pytest.approx(47.1931e9)
    other = clpeak_rates(CLPEAK_OUTPUT, platform_name="Another", device_name="AMD EPYC")
    assert [rate.best_per_s for rate in other] == pytest.approx([1e9, 2e9])


NUMPY = {
    "program": "numpy",
    "resource": "compute",
    "kind": "fp32",
    "processor": "cpu",
    "n_threads": 2,
    "best_per_s": 5e11,
}

LIKWID = 'printf "%s\\n" "Test: $2" "Using 2 threads" "MByte/s:\t\t100.00"; echo "$@" >>"$0.asked"'
STREAM = "# STREAM version\necho Number of Threads counted = $OMP_NUM_THREADS; echo 'Copy: 1.0 0'; echo 'Triad: 2.0 0'"
XML = """<clpeak><platform name='P'><device name='D'>
<global_memory_bandwidth unit='gbps'><float>3</float></global_memory_bandwidth>
<single_precision_compute unit='gflops'><float>$GFLOPS</float></single_precision_compute>
</device></platform></clpeak>"""
CLPEAK = f'cat >"$4" <<END\n{XML}\nEND'

DEVICE = replace(opencl_device("gpu"), platform_name="P", device_name="D")

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return how to put a shell script on a PATH that has none of the programs; NumPy's worker is replaced."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("env", "sh", "cat"):
        (folder / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(folder))

    def worker(plan: IndependentPlan, *, extra_environment: Mapping[str, str]) -> dict[str, Any]:
        assert extra_environment["OPENBLAS_NUM_THREADS"] == str(plan.n_threads)
        return {"rates": [NUMPY]}

    replace_workers(monkeypatch, worker)

    return lambda name, script: write_script(folder / name, script)


def on_processor() -> list[tuple[str, str, int | None, float]]:
    rates = rates_on_processor(n_threads=2, working_set_bytes=1 << 20, budget_ms=10, tell=pytest.fail)
    return [(rate.program, rate.kind, rate.n_threads, rate.best_per_s) for rate in rates]


def test_likwid_is_run_for_each_use_of_memory(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load, a copy and a triad run on the threads and the working set that were asked for."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    path = install("likwid-bench", LIKWID)
    assert on_processor()[1:] == [("likwid-bench", kind, 2, 1e8) for kind in ("read", "copy", "triad")]
    asked = Path(f"{path}.asked").read_text().splitlines()
    assert asked == [f"-t {test}_avx -s 1 -w N:1048kB:2" for test in ("load", "copy", "stream")]
    assert absent_programs() == ("stream", "clpeak")


def test_stream_has_the_threads_that_are_asked_for(install: Install) -> None:
    """STREAM takes its number of threads from the environment; one that does not call itself STREAM is not run."""
    install("stream", STREAM)
    assert on_processor()[1:] == [("stream", "copy", 2, 1e6), ("stream", "triad", 2, 2e6)]
    install("stream", "exit 1")  # as ImageMagick has one
    assert "stream" in absent_programs()
    assert len(on_processor()) == 1


def test_clpeak_has_the_environment_of_the_kernels(install: Install) -> None:
    install("clpeak", CLPEAK)
    rates = rates_on_device(DEVICE, {"GFLOPS": "4.5"})
    found = [(rate.kind, rate.processor, rate.best_per_s) for rate in rates]
    assert found == [("read", "D", 3e9), ("fp32", "D", 4.5e9)]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no device >&2; exit 3", "clpeak: returned 3: no device"),
        ("ulimit -t 30; while :; do :; done", "clpeak: still running after 0 s and was stopped"),
    ],
)
def test_a_program_that_fails_is_named(
    install: Install, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    """A program that is there and fails, or has no end, is not taken for one that is absent."""
    if "while" in script:
        monkeypatch.setattr(module, "LIMIT_S", 0.1)
    install("clpeak", script)
    with pytest.raises(MeasurementError, match=message):
        rates_on_device(DEVICE, {})


def test_numpy_is_measured_by_a_worker() -> None:
    plan = IndependentPlan(n_threads=1, working_set_bytes=1 << 20, budget_ms=40)
    payload = run_worker(plan, extra_environment=blas_environment(1))
    rates = [IndependentRate.from_plain(plain) for plain in payload["rates"]]
    assert [(rate.resource, rate.kind, rate.n_threads) for rate in rates] == [
        (Resource.COMPUTE, "fp32", 1),
        (Resource.BANDWIDTH, "copy", 1),
        (Resource.BANDWIDTH, "triad", 1),
    ]
    assert all(1e8 < rate.best_per_s < 1e14 for rate in rates)
    assert payload["contention"]["wall_ns"] > 0
