"""A driver with faults to order below the tracing layer: what the suite makes of each, on a device that is made up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from operator import ge
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import NativeBuildError, PerfsuiteError
from perfsuite.measure.environment import environment_engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.opencl_backend import set_up_opencl
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.opencl_commands import CommandType
from perfsuite.records.own_files import user_cache
from perfsuite.trace.opencl.device_clock import AlignedTrace, align
from perfsuite.trace.opencl.stamps import DISPATCH, EXECUTION, QUEUEING, Anomaly
from perfsuite.workload.weights import materialize, resolve
from tests.loaded_tool import loaded_tool

tool = loaded_tool("driver_faults")

#: Few steps keep a run short; a fault at a rate of 0.1 is in some of the launches of each kernel.
N_STEPS = 12

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Any:
    try:
        return tool.open_bench(tmp_path_factory.mktemp("layers"))
    except (NativeBuildError, FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the layers cannot be built: {error}")
    except SystemExit as error:
        pytest.skip(f"no OpenCL device: {str(error).strip().splitlines()[-1]}")


@pytest.fixture(scope="module")
def run_with(bench: Any) -> Run:
    def run(faults: str, **options: Any) -> Any:
        return tool.run_with(bench, faults, **{"n_steps": N_STEPS, **options})

    return run


def kernels_of(aligned: AlignedTrace) -> Any:
    return np.flatnonzero(aligned.trace.commands["type"] == CommandType.KERNEL)


def shares_known(aligned: AlignedTrace) -> tuple[float, ...]:
    """Return of which share of the kernels queueing, dispatch and execution are known."""
    kernels = kernels_of(aligned)
    return tuple(float(aligned.duration_ns(each)[1][kernels].mean()) for each in (QUEUEING, DISPATCH, EXECUTION))


def test_without_faults_all_is_as_the_driver_says(run_with: Run) -> None:
    """Every time is known, passed through unaltered, and nothing is reported."""
    run = run_with("")
    true = tool.in_truth(run)
    assert all((run.trace.commands[name] == true.commands[name]).all() for name in tool.STAMPS)
    assert shares_known(align(run.trace)) == (1.0, 1.0, 1.0)
    assert tool.outcome_of(run).notes == ()


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("fault", "anomaly", "least_known"),
    [
        ("submit_late rate=0.1 amount=300000", Anomaly.START_BEFORE_SUBMIT, (0.8, 0.8, 1.0)),
        ("start_early rate=0.1 amount=20000", Anomaly.START_BEFORE_SUBMIT, (1.0, 0.8, 0.8)),
        ("end_early rate=0.1 amount=1000", Anomaly.END_BEFORE_START, (1.0, 0.8, 0.8)),
        ("no_length rate=0.1", Anomaly.NO_LENGTH, (1.0, 0.8, 0.8)),
        ("zero_queued rate=0.1", Anomaly.ZERO_TIME, (0.8, 1.0, 1.0)),
        ("zero_submit rate=0.1", Anomaly.ZERO_TIME, (0.8, 0.8, 1.0)),
        ("zero_start rate=0.1", Anomaly.ZERO_TIME, (1.0, 0.8, 0.8)),
        ("zero_end rate=0.1", Anomaly.ZERO_TIME, (1.0, 1.0, 0.8)),
        ("none_end rate=0.1", Anomaly.ZERO_TIME, (1.0, 1.0, 0.8)),
        ("none_all rate=0.1", Anomaly.ZERO_TIME, (0.8, 0.8, 0.8)),
        ("queued_stray rate=0.1 amount=5000000", Anomaly.OUTSIDE_CALL, (0.8, 1.0, 1.0)),
    ],
)
def test_a_fault_costs_what_needs_the_time_and_nothing_else(
    run_with: Run, fault: str, anomaly: Anomaly, least_known: tuple[float, ...]
) -> None:
    """In a tenth of the launches: phases and kernels stay valid and right to 1 %, and the fault is counted and told."""
    run = run_with(fault)
    aligned = align(run.trace)
    known = shares_known(aligned)
    assert all(map(ge, known, least_known))
    assert [share == 1.0 for share in known] == [least == 1.0 for least in least_known]
    assert (aligned.anomalies[kernels_of(aligned)] & anomaly).any()
    found = tool.outcome_of(run)
    assert (found.n_valid_phases, found.n_valid_kernels, found.problems) == (1, 3, ())
    assert found.error_ratio <= 0.01
    assert len(found.notes) == 1


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    "fault", ["start_early rate=1 amount=20000", "end_early rate=1 amount=1000", "zero_start", "none_all"]
)
def test_a_kernel_without_a_time_that_can_be_right_is_invalid(run_with: Run, fault: str) -> None:
    """In all launches of one kernel: that kernel is not reported, and why is; the phase and the other kernels are."""
    found = tool.outcome_of(run_with(f"{fault} kernel=middle_*"))
    assert (found.n_valid_phases, found.n_valid_kernels, found.n_silently_wrong) == (1, 2, 0)
    (problem,) = found.problems
    assert problem.startswith("0 of ")


@pytest.mark.long_but_first
@pytest.mark.parametrize("tick_ns", [52.0833333333, 80, 1000])
def test_the_tick_of_a_driver_is_measured_and_stated(run_with: Run, tick_ns: float) -> None:
    """The tick is found to a ns, and every kernel's time is within the error that is stated for it, or 1 %."""
    run = run_with(f"tick amount={tick_ns}")
    (clock,) = align(run.trace).clocks
    assert clock.tick_ns == pytest.approx(tick_ns, abs=1)
    found = tool.outcome_of(run)
    assert (found.n_valid_kernels, found.n_silently_wrong) == (3, 0)
    assert found.stated_ratio > 0


def test_a_clock_that_drifts_is_followed(run_with: Run) -> None:
    """Executions last by the device's clock, which is 200 ppm fast, and times on the host's clock have an error."""
    run = run_with("drift amount=200")
    (clock,) = align(run.trace).clocks
    assert clock.error_ns is not None
    assert abs(clock.drift_ppm + 200) <= clock.drift_error_ppm + 20
    assert tool.outcome_of(run).error_ratio < 0.001


def test_a_driver_without_a_timer_is_placed_by_its_calls(run_with: Run) -> None:
    aligned = align(run_with("no_timer").trace)
    assert (aligned.clocks[0].basis.value, shares_known(aligned)) == ("enqueue calls", (1.0, 1.0, 1.0))


@pytest.mark.long_but_first
@pytest.mark.parametrize("quirk", tool.QUIRKS, ids=lambda quirk: quirk.vendor)
def test_drivers_as_users_report_them_leave_all_valid(run_with: Run, quirk: Any) -> None:
    """With each vendor's quirks phases and kernels are valid, right to 1 %, and what is odd is reported."""
    run = run_with(quirk.faults)
    found = tool.outcome_of(run)
    assert (found.n_valid_phases, found.n_valid_kernels, found.n_silently_wrong) == (1, 3, 0)
    assert found.error_ratio <= 0.01
    has_odd = any(text in quirk.faults for text in ("zero_", "none_", "submit_late", "no_length"))
    assert bool(found.notes) == has_odd
    assert quirk.sources


@pytest.mark.long
@pytest.mark.parametrize("rate", tool.RATES)
@pytest.mark.parametrize("fault", tool.FAULTS.values())
def test_nothing_is_silently_wrong_at_any_rate(run_with: Run, fault: str, rate: float) -> None:
    """At 0.1 to 100 % the phase is valid, and a kernel is right to 1 %, or to what is stated, or not told."""
    found = tool.outcome_of(run_with(fault.format(rate=rate), n_steps=40))
    assert (found.n_valid_phases, found.n_silently_wrong) == (1, 0)
    assert found.n_valid_kernels == 3 or (rate == 1.0 and found.problems)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("fail_build", r"kernel add of pointwise\.cl does not build for .*; see .*build\.log"),
        ("fail_launch amount=3", r"kernel/add/\S+: clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES on "),
        ("fail_read", r"kernel/add/\S+: clEnqueueReadBuffer failed: OUT_OF_RESOURCES on "),
    ],
)
def test_a_driver_that_fails_is_one_line_of_a_whole_run(fault: str, said: str, bench: Any, tmp_path: Path) -> None:
    """The line names what failed; each case is invalid, without samples, and nothing becomes a baseline."""
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--device=host", "--perf-dir=run"]
    done = subprocess.run(
        [*words, "--baseline=record", "-k", "test_kernel and add"],
        cwd=tmp_path,
        env={**os.environ, "OPENCL_LAYERS": str(bench.faults_layer), "PERFSUITE_OPENCL_FAULTS": fault},
        capture_output=True,
        text=True,
        timeout=300,
    )
    (line,) = re.findall(r"^perfsuite: error: (.*)$", done.stdout + done.stderr, re.MULTILINE)
    assert re.match(said, line)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    cases = json.loads((tmp_path / "run" / "run.json").read_text())["cases"]
    assert [(case["outcome"], case.get("samples_ns", [])) for case in cases] == [("invalid", [])] * 2
    assert not (tmp_path / "baselines").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("fail_build", r"libggml-opencl\.so: a kernel of llama\.cpp's OpenCL backend does not compile on the device "),
        ("fail_launch", r"the worker for 'llama' was killed by SIGABRT: ggml_opencl: clEnqueueND.* error -5"),
        ("fail_read", r"the worker for 'llama' was killed by SIGABRT: ggml_opencl: clEnqueueRead.* error -5"),
    ],
)
def test_a_driver_that_fails_under_llama_cpp_is_one_line(fault: str, said: str, bench: Any, tmp_path: Path) -> None:
    """No record comes back: a process of llama.cpp on OpenCL ends with an error that names what failed."""
    engine, folder = environment_engine(), user_cache()
    try:
        backend = set_up_opencl(engine, None, folder)
    except PerfsuiteError as error:
        pytest.skip(f"no llama.cpp on OpenCL: {error}")
    weights = materialize(resolve("tiny-llama-q8_0", cache_dir=tmp_path), cache_dir=tmp_path)
    plan = LlamaPlan(
        gguf_path=str(weights),
        library_dir=str(engine.library_dir),
        engine_build_id=engine.build_id,
        cache_dir=str(folder),
        n_threads=1,
        n_prompt=8,
        n_gen=2,
        recorder="none",
        n_gpu_layers=999,
        backend_library=str(backend.library) if backend.library else None,
    )
    own = backend.environment()
    layers = ":".join(filter(None, (str(bench.faults_layer), own.get("OPENCL_LAYERS"))))
    with pytest.raises(PerfsuiteError, match=f"^{said}") as caught:
        run_worker(
            plan,
            extra_environment={
                **own,
                "OPENCL_LAYERS": layers,
                "PERFSUITE_OPENCL_FAULTS": f"{fault}; quick_build",
                "GGML_OPENCL_KERNEL_CACHE_DIR": str(tmp_path / "kernels"),  # what is not optimised is not kept
            },
        )
    assert "\n" not in str(caught.value)
