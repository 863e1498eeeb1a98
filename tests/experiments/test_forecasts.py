"""Forecasts in whole runs of the plugin: from a stored calibration, or from the ceilings of the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.machine import default_threads
from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.engine_times import EngineTimes, TimeForecast, case_forecasts
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.ceiling_store import store_calibration, stored_ceilings
from perfsuite.measure.environment import environment_engine
from perfsuite.measure.plan import LlamaPlan, OperatorsPlan, Plan, ProbePlan, TurnsPlan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.testing.workers import replace_workers
from perfsuite.trace.samples import replicate_samples
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve
from tests.fake_device import FakeDevice, HostRuns
from tests.fake_opencl import SCENARIO, FakeOpenCl
from tests.synthetic_calibration import calibration, composition, lawful_ns, points_of, token_phase
from tests.synthetic_calibration_run import answer

#: What each run has besides.
USUAL = ("-k", "not kernel", "-o", "perf_session_spread=0.01")

MODEL = "smollm2-135m-l2-q8_0"
PREFIX = f"{MODEL}/siso"
PREFILL = f"phase/{PREFIX}/prefill"
LAYERS = {OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536): 30}
HOST = find_profile("host")


def _calibration(prefill_ns: float) -> Calibration:
    """Return a calibration by whose law the prompt of the stored record takes this long."""

    def scaled(by: float) -> Calibration:
        return calibration(
            *(
                composition(LAYERS, ratio=1.0, phase=phase, rest_ns=30.0, law=lambda shape: lawful_ns(shape) * by)
                for phase in ("prefill", "decode")
                for _ in range(4)
            ),
            points=points_of(standard_shapes(), lambda shape: lawful_ns(shape) * by),
            token_phases=[
                token_phase(phase, 49152, 1e6) for phase in ("copy", "softmax", "sampling") for _ in range(4)
            ],
            fingerprint=host_fingerprint(),
            n_threads=default_threads(),
        )

    return scaled(prefill_ns / _forecasts(scaled(1.0))[PREFILL].expected_ns)


def _forecasts(of: Calibration) -> dict[str, TimeForecast]:
    workload = llama_workload(resolve(MODEL, cache_dir=Path("/nowhere")), find_scenario("siso"))
    return case_forecasts(workload, EngineTimes(of))


def _store(of: Calibration, folder: Path) -> Path:
    return store_calibration(of, environment_engine().build_id, folder / "cache")


@pytest.fixture
def measured_ns(stored_record: EngineRecord) -> int:
    return replicate_samples(stored_record).phase_ns[Phase.PREFILL]


@pytest.mark.long
def test_forecasts_come_from_the_calibration_or_from_ceilings(runs: HostRuns, tmp_path: Path, measured_ns: int) -> None:
    """Each phase and operator has the calibration's expectation and interval, and the floor of the ceilings."""
    runs().stdout.fnmatch_lines(["perfsuite: forecasts from ceilings alone; 'perfsuite calibrate' makes them *"])
    by_ceilings = runs.cases()
    case = by_ceilings[PREFILL]
    assert case["expected_ns"] > 0
    assert case["expected_lower_ns"] is case["expected_upper_ns"] is None
    assert case["limit_ns"] == pytest.approx(case["expected_ns"] * HOST.forecast_tolerance_ratio["phase"], abs=10)
    own = _calibration(measured_ns)
    _store(own, tmp_path)
    assert runs().ret in (0, 1)
    cases, forecasts = runs.cases(), _forecasts(own)
    assert set(cases) == set(forecasts) == set(by_ceilings)
    for case_id, case in cases.items():
        found = forecasts[case_id]
        bounds = (case["expected_lower_ns"], case["expected_ns"], case["expected_upper_ns"])
        assert bounds == (round(found.lower_ns), round(found.expected_ns), round(found.upper_ns))
        assert case["floor_ns"] == by_ceilings[case_id]["floor_ns"]
        tolerance = HOST.calibrated_tolerance_ratio[case["kind"]]
        is_long = found.expected_ns >= HOST.forecast_least_ns
        assert case["limit_ns"] == (round(found.upper_ns * tolerance) if is_long else None)


@pytest.mark.long_but_first
@pytest.mark.parametrize("is_beyond", [False, True])
def test_a_case_within_the_tolerance_of_its_forecast_is_new(
    runs: HostRuns, tmp_path: Path, measured_ns: int, is_beyond: bool
) -> None:
    width = _forecasts(_calibration(measured_ns))[PREFILL]
    _store(_calibration(measured_ns / (width.upper_ns / width.expected_ns * 1.25 if is_beyond else 1.0)), tmp_path)
    runs()
    case = runs.cases()[PREFILL]
    assert (case["outcome"], case["expected_upper_ns"] < case["measured_ns"]) == ("new", is_beyond)
    assert case["expected_lower_ns"] < case["measured_ns"] < case["limit_ns"]


def test_slow_is_told_apart_from_regressed(runs: HostRuns, tmp_path: Path, measured_ns: int) -> None:
    """A case that equals its baseline and is far beyond its forecast is slow, and the reason has the bound."""
    runs("--baseline=record")
    assert runs().ret == 0
    _store(_calibration(measured_ns / 5), tmp_path)
    result = runs()
    assert result.ret == 1
    assert "regressed" not in runs.outcomes()
    case = runs.cases()[PREFILL]
    assert (case["outcome"], case["reason"].partition(": ")[0]) == ("slow", "slower than expected")
    assert case["measured_ns"] > case["limit_ns"] > case["expected_upper_ns"]
    result.stdout.fnmatch_lines([f"*{PREFILL}*", "*slower than expected: *, at most *"])


def test_the_threads_of_the_run_choose_the_calibration(runs: HostRuns, tmp_path: Path) -> None:
    n_threads = default_threads() + 5
    _store(replace(_calibration(1e6), n_threads=n_threads), tmp_path)
    result = runs("--collect-only", f"--threads={n_threads}")
    result.stdout.fnmatch_lines(["perfsuite: forecasts from calibration of 2025-01-02T03:04:05+00:00"])
    runs("--collect-only").stdout.fnmatch_lines(["perfsuite: forecasts from ceilings alone; *"])


def test_a_board_at_the_end_of_a_link_has_ceilings_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has shown is kept under its identity, so that another of its kind has another floor."""
    board = LocalBoard(cache_dir=tmp_path / "board", is_local=False)
    monkeypatch.setattr(LocalBoard, "run", lambda _, plan: answer(plan))
    desk: Any = SimpleNamespace(board=board, cache_dir=tmp_path / "desk", n_threads=2)
    Forecasts(config=desk, calibrated={}).probe()
    facts = board.facts()
    assert stored_ceilings(facts.fingerprint, 2, tmp_path / "desk", board=facts.identity) is not None
    assert stored_ceilings(facts.fingerprint, 2, tmp_path / "desk") is None


@pytest.mark.parametrize("is_calibrated", [True, False])
def test_pairs_are_judged_by_a_calibration_that_is_stored(
    runs: HostRuns, tmp_path: Path, measured_ns: int, is_calibrated: bool
) -> None:
    """Compared with another engine, what takes far longer than forecast is slow; without a calibration none is made."""
    if is_calibrated:
        _store(_calibration(measured_ns / 5), tmp_path)
    result = runs(f"--against={environment_engine().library_dir}", "--perf-calibrate=quick", "-k", "prefill")
    result.stdout.fnmatch_lines(["perfsuite: *in pairs against *"])
    result.stdout.no_fnmatch_line("*forecasts from*")
    case = runs.cases()[PREFILL]
    assert case["floor_ns"] > 0
    assert (case["outcome"] == "slow", case["limit_ns"] is not None) == (is_calibrated, is_calibrated)
    assert {type(plan) for plan in runs.device.plans} == {ProbePlan, TurnsPlan}


@pytest.fixture
def uncalibrated(fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """Return a device that answers the plans of a calibration too, by a law."""

    def run(plan: Plan, **options: object) -> dict[str, Any]:
        is_own = isinstance(plan, LlamaPlan) and "calibration-" in plan.gguf_path
        if not is_own and not isinstance(plan, OperatorsPlan):
            return fake_device.run(plan, **options)
        fake_device.plans.append(plan)
        return answer(plan)

    replace_workers(monkeypatch, run)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize", lambda weights, cache_dir: cache_dir / f"{weights.name}.gguf"
    )
    return fake_device


_QUICK = ("--perf-calibrate=quick", "--perf-replicates=5")


def _n_calibrating(device: FakeDevice) -> int:
    return sum(isinstance(plan, OperatorsPlan) for plan in device.plans)


def test_a_first_run_makes_a_quick_calibration_and_keeps_it(runs: HostRuns, uncalibrated: FakeDevice) -> None:
    """It comes before all else that is measured, gives forecasts an interval, and serves the next run."""
    first = runs(*_QUICK)
    first.stdout.fnmatch_lines(["perfsuite: forecasts from a quick calibration, which is made before *"])
    assert isinstance(uncalibrated.plans[0], OperatorsPlan)
    by_first = runs.cases()
    assert by_first[PREFILL]["expected_upper_ns"] > by_first[PREFILL]["expected_ns"] > 0
    upper_ns, limit_ns = (by_first[PREFILL][key] for key in ("expected_upper_ns", "limit_ns"))
    assert limit_ns == pytest.approx(upper_ns * HOST.quick_tolerance_ratio["phase"], abs=2)
    n_made = _n_calibrating(uncalibrated)
    second = runs(*_QUICK)
    second.stdout.fnmatch_lines(["perfsuite: forecasts from a quick calibration of 2*; 'perfsuite calibrate' *"])
    assert _n_calibrating(uncalibrated) == n_made > 0
    assert runs.cases()[PREFILL]["expected_ns"] == by_first[PREFILL]["expected_ns"]


@pytest.mark.parametrize(
    "options",
    [("--perf-calibrate=off",), ("--collect-only", *_QUICK), ("-k", "test_kernel", *_QUICK), _QUICK],
    ids=["off", "collect-only", "kernels", "stored"],
)
def test_no_quick_calibration_is_made(
    runs: HostRuns, uncalibrated: FakeDevice, tmp_path: Path, options: tuple[str, ...]
) -> None:
    if options == _QUICK:
        _store(_calibration(1e6), tmp_path)
    runs(*options)
    assert _n_calibrating(uncalibrated) == 0


def test_a_quick_calibration_that_fails_is_a_note(
    runs: HostRuns, uncalibrated: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbed = Mock(side_effect=MeasurementError("disturbed"))
    monkeypatch.setattr("perfsuite.measure.calibrate.run_undisturbed", disturbed)
    result = runs(*_QUICK)
    result.stdout.fnmatch_lines(["*quick calibration: disturbed; until there is one, ceilings alone forecast"])
    case = runs.cases()[PREFILL]
    assert case["expected_upper_ns"] is None
    assert case["limit_ns"] == pytest.approx(case["expected_ns"] * HOST.forecast_tolerance_ratio["phase"], abs=10)


def _run_opencl(runs: HostRuns, fake: FakeOpenCl, kind: str) -> dict[str, dict[str, Any]]:
    """Run the engine's cases on an OpenCL device of a type, and return them."""
    fake.kind = kind
    engine = ("-k", "test_phase or test_operator or test_engine_kernel", "--perf-replicates=5")
    runs("--backend=opencl", f"--scenario={SCENARIO}", *engine)
    return runs.cases()


#: What the processor does on every backend.
_PASSES = tuple(f"phase/{MODEL}/{SCENARIO}/{phase}" for phase in ("copy", "softmax", "sampling"))

#: Cases of each kind that read parameters.
_DECODES = {"phase": "", "operator": "/ffn_up", "kernel": "/kernel_mul_mat"}


def test_opencl_on_a_processor_has_its_forecasts_and_no_limit(
    runs: HostRuns, fake_opencl: FakeOpenCl, tmp_path: Path
) -> None:
    """Floor and forecast are those of the processor's ceilings; how near a compiler comes is for the baseline."""
    _store(replace(_calibration(1e6), n_threads=default_threads()), tmp_path)
    cases = _run_opencl(runs, fake_opencl, "cpu")
    assert {case["kind"] for case in cases.values()} == {"phase", "operator", "engine_kernel"}
    known = {each: case for each, case in cases.items() if not each.endswith("/rest")}
    assert [each for each, case in known.items() if not case["expected_ns"]] == []
    assert all(cases[f"{kind}/{MODEL}/{SCENARIO}/decode{end}"]["floor_ns"] > 0 for kind, end in _DECODES.items())
    assert {each for each, case in cases.items() if case["limit_ns"] is not None} <= set(_PASSES)
    assert all(case["expected_upper_ns"] is None for case in cases.values())  # no calibration is of OpenCL
    assert all(case["outcome"] == "new" for case in cases.values())


def test_another_device_has_no_forecast(runs: HostRuns, fake_opencl: FakeOpenCl) -> None:
    cases = _run_opencl(runs, fake_opencl, "gpu")
    for case_id, case in cases.items():
        has_forecast = case_id in _PASSES
        assert (case["expected_ns"] is not None) == (case["floor_ns"] is not None) == has_forecast
        assert case["limit_ns"] is None or has_forecast
    assert any(case["kind"] == "engine_kernel" for case in cases.values())
