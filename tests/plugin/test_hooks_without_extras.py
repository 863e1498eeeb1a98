"""Runs of the plugin where only the base is installed: what is left out is said, and what was asked for is refused."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from perfsuite.errors import EXTRA_OF
from tests.fake_device import HostRuns

#: What each run has besides.
USUAL = ("-o", "perf_session_spread=0.01")


@pytest.fixture(autouse=True)
def base_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody find the modules that extras bring, nor a driver for OpenCL."""
    monkeypatch.setattr("perfsuite.errors.find_spec", lambda name: None if name in EXTRA_OF else find_spec(name))
    monkeypatch.setenv("OCL_ICD_VENDORS", "/nowhere")
    monkeypatch.setattr("perfsuite.measure.kernel_runtime.find_runtime", lambda: None)


def test_kernels_and_history_are_left_out_and_said_so(runs: HostRuns) -> None:
    """Phases and operators are measured; a line for the kernels and one for the history have the remedy."""
    result = runs("-q")
    assert result.ret == 0
    assert {case["kind"] for case in runs.cases().values()} == {"phase", "operator"}
    result.stdout.fnmatch_lines_random(
        [
            "*left out: kernels: needs an OpenCL driver, and none is installed; run: pip install 'perfsuite[[]opencl]'",
            "*left out: history: needs duckdb, which is not installed; run: pip install 'perfsuite[[]history]'",
        ]
    )
    assert any("left out: kernels" in note for note in runs.plain()["device_notes"])


def test_the_kernels_that_are_left_out_are_no_green_run(runs: HostRuns) -> None:
    """Where the kernels alone were chosen, no test runs, which pytest's exit code says."""
    result = runs("-k", "test_kernel")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*left out: kernels: needs an OpenCL driver*"])


@pytest.mark.parametrize(("option", "extra"), [("--perf-history=here", "history"), ("--perf-shapes=gemm", "shapes")])
def test_what_an_option_asks_for_is_refused_at_once(runs: HostRuns, option: str, extra: str) -> None:
    result = runs(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {option}: needs *; run: pip install 'perfsuite[[]{extra}]'"])
    assert runs.device.plans == []
