"""Running the programs that are there, each replaced by a script that prints what it once printed."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure import independent_rates as module
from perfsuite.measure.independent_rates import absent_programs, rates_on_device, rates_on_processor
from perfsuite.measure.plan import IndependentPlan

from ..synthetic_opencl_backend import opencl_device

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
        (folder / name).symlink_to(
            next(Path(each) / name for each in ("/bin", "/usr/bin") if (Path(each) / name).exists())
        )
    monkeypatch.setenv("PATH", str(folder))

    def worker(plan: IndependentPlan, *, extra_environment: Mapping[str, str]) -> dict[str, Any]:
        assert extra_environment["OPENBLAS_NUM_THREADS"] == str(plan.n_threads)
        return {"rates": [NUMPY]}

    monkeypatch.setattr("perfsuite.measure.launch.run_worker", worker)

    def written(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return written


def on_processor() -> list[tuple[str, str, int | None, float]]:
    """Measure on two threads and return what identifies each rate, and the rate."""
    rates = rates_on_processor(n_threads=2, working_set_bytes=1 << 20, budget_ms=10)
    return [(rate.program, rate.kind, rate.n_threads, rate.best_per_s) for rate in rates]


def test_numpy_is_always_there(install: Install) -> None:
    """Without any of the programs there are NumPy's rates, and the absent ones are named."""
    assert absent_programs() == ("likwid-bench", "stream", "clpeak")
    assert on_processor() == [("numpy", "fp32", 2, 5e11)]
    assert rates_on_device(DEVICE, {}) == ()


def test_likwid_is_run_for_each_use_of_memory(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load, a copy and a triad run on the threads and the working set that were asked for."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    path = install("likwid-bench", LIKWID)
    assert on_processor()[1:] == [("likwid-bench", kind, 2, 1e8) for kind in ("read", "copy", "triad")]
    asked = Path(f"{path}.asked").read_text().splitlines()
    assert asked == [f"-t {test}_avx -s 1 -w N:1048kB:2" for test in ("load", "copy", "stream")]
    assert absent_programs() == ("stream", "clpeak")


def test_stream_has_the_threads_that_are_asked_for(install: Install) -> None:
    """STREAM takes its number of threads from the environment that it is given."""
    install("stream", STREAM)
    assert on_processor()[1:] == [("stream", "copy", 2, 1e6), ("stream", "triad", 2, 2e6)]


def test_imagemagicks_stream_is_none(install: Install) -> None:
    """A program of that name that does not call itself STREAM is not run."""
    install("stream", "exit 1")
    assert "stream" in absent_programs()
    assert len(on_processor()) == 1


def test_clpeak_has_the_environment_of_the_kernels(install: Install) -> None:
    """clpeak is given the variables with which the runtimes are found, and its XML is read."""
    install("clpeak", CLPEAK)
    rates = rates_on_device(DEVICE, {"GFLOPS": "4.5"})
    assert [(rate.kind, rate.processor, rate.best_per_s) for rate in rates] == [
        ("read", "D", 3e9),
        ("fp32", "D", 4.5e9),
    ]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no device >&2; exit 3", "clpeak: returned 3: no device"),
        ("exit 1", "clpeak: returned 1: it printed nothing"),
        ("true", "clpeak: wrote no XML"),
    ],
)
def test_a_program_that_fails_is_named(install: Install, script: str, message: str) -> None:
    """A program that is there and fails is not taken for one that is absent."""
    install("clpeak", script)
    with pytest.raises(MeasurementError, match=message):
        rates_on_device(DEVICE, {})


def test_a_program_that_does_not_end_is_stopped(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program has a limit."""
    monkeypatch.setattr(module, "_LIMIT_S", 0.1)
    install("clpeak", "ulimit -t 30; while :; do :; done")
    with pytest.raises(MeasurementError, match="clpeak: still running after 0 s and was stopped"):
        rates_on_device(DEVICE, {})
