"""``perfsuite calibrate``, with its workers replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.cli import main
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.threads import default_threads
from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.calibration_plan import N_ROUNDS
from perfsuite.expectation.timing.grid import STANDARD_TYPES, standard_shapes, typical_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.calibrate import CalibrationRun
from perfsuite.measure.calibration_store import find_calibration
from perfsuite.measure.plan import Plan, ProbePlan
from tests.command_streams import Refused, Streams
from tests.synthetic_calibration import calibration, composition

BANDWIDTHS = [
    {"working_set_bytes": size, "read_bytes_per_s": rate, "copy_bytes_per_s": rate, "triad_bytes_per_s": rate}
    for size, rate in ((10**6, 4e11), (10**8, 5e10))
]
CEILINGS = {
    "n_threads": 2,
    "bandwidths": BANDWIDTHS,
    "fp32_flops_per_s": 4e11,
    "int8_flops_per_s": 1.6e12,
    "f16_flops_per_s": None,
    "dispatch_ns": 300,
}

LAYERS = {OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536): 30}
COMPOSITIONS = (
    composition(LAYERS, ratio=1.25, rest_ns=3000.0, phase="prefill"),
    composition(LAYERS, ratio=1.1, rest_ns=600.0),
)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> list[CalibrationRun]:
    """Replace the measurements by a law, and the caches by a temporary folder; return what was asked for."""
    asked: list[CalibrationRun] = []

    def measured(run: CalibrationRun, progress: Callable[[str], None]) -> Calibration:
        asked.append(run)
        progress("round 1 of 1: 600 operators")
        return calibration(*COMPOSITIONS, fingerprint=host_fingerprint(), n_threads=run.n_threads)

    def probed(plan: Plan, **_: object) -> dict[str, Any]:
        assert isinstance(plan, ProbePlan)
        return {"ceilings": {**CEILINGS, "n_threads": plan.n_threads}}

    monkeypatch.setattr("perfsuite.experiments.calibration.command.calibrate", measured)

    def says_none(*_: object, **__: object) -> None:
        raise MeasurementError("it says no graphs")

    monkeypatch.setattr("perfsuite.experiments.calibration.command.engine_graphs", says_none)
    monkeypatch.setattr("perfsuite.measure.launch.run_worker", probed)
    return asked


def test_a_calibration_is_stored_for_this_device_engine_and_threads(
    runs: list[CalibrationRun], capsys: Streams, tmp_path: Path
) -> None:
    """What was measured is found by the fingerprint, the build and the number of threads, and by no other number."""
    assert main(["calibrate", "--threads", "3"]) == 0
    (run,) = runs
    found = find_calibration(host_fingerprint(), run.engine.build_id, 3, tmp_path / "cache")
    assert found is not None
    assert found.compositions == COMPOSITIONS
    assert find_calibration(host_fingerprint(), run.engine.build_id, 2, tmp_path / "cache") is None
    assert str(tmp_path / "cache") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "types", "n_rounds", "n_threads"),
    [
        ([], STANDARD_TYPES, N_ROUNDS, None),
        (["--type=Q5_K", "--type=bf16", "--rounds=1", "--threads=1"], ("q5_k", "bf16"), 1, 1),
    ],
    ids=["the usual", "asked for"],
)
def test_options_reach_the_measurement(
    runs: list[CalibrationRun], options: list[str], types: tuple[str, ...], n_rounds: int, n_threads: int | None
) -> None:
    assert main(["calibrate", *options]) == 0
    (run,) = runs
    assert (run.profile.name, run.plan.is_quick) == ("host", False)
    assert (run.plan.shapes, run.plan.n_rounds) == (standard_shapes(types), n_rounds)
    assert run.n_threads == (n_threads or default_threads())


@pytest.mark.usefixtures("runs")
def test_people_read_efficiencies_and_what_the_engine_adds(capsys: Streams) -> None:
    """There is a row for two shapes of each kind, and a sentence for each phase; progress is on standard error."""
    assert main(["calibrate"]) == 0
    out, err = capsys.readouterr()
    for word in ("MUL_MAT", "FLASH_ATTN_EXT", "RMS_NORM+MUL", "q4_k", "GFLOP/s", "of peak", "of memory"):
        assert word in out
    assert "prefill: operators within the engine take +25.0 % against alone" in out
    assert "decode: operators within the engine take +10.0 % against alone" in out
    architectures, processes = "± 30.0 % from one architecture to the next", "± 0.0 % from one process to the next"
    assert out.count(f"; with a factor for each kind {architectures}, {processes}\n") == 2
    left_out, told = err.splitlines()[:4], err.splitlines()[4:6]
    assert all(line.endswith(" is left out: it says no graphs") for line in left_out)
    assert told == ["calibrate: ceilings", "calibrate: round 1 of 1: 600 operators"]


@pytest.mark.usefixtures("runs")
def test_programs_read_json(capsys: Streams) -> None:
    assert main(["calibrate", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["operators"]) == len(typical_shapes(standard_shapes()))
    for operator in plain["operators"]:
        assert set(operator) == {
            *("shape", "time_ns", "flops_per_s", "bytes_per_s", "compute_ratio", "memory_ratio", "spread_ratio")
        }
        assert operator["compute_ratio"] == pytest.approx(operator["flops_per_s"] / 4e11)
        assert operator["memory_ratio"] == pytest.approx(operator["bytes_per_s"] / 5e10)
    assert set(plain["phases"]) == {"prefill", "decode"}
    prefill, decode = plain["phases"]["prefill"], plain["phases"]["decode"]
    assert prefill["overall"]["ratio"] == pytest.approx(1.25, rel=0.001)
    assert {kind: each["ratio"] for kind, each in decode["kinds"].items()} == {"MUL_MAT": pytest.approx(1.1, rel=0.001)}
    assert decode["rest_ns"] + 30 * decode["rest_ns_per_operator"] == pytest.approx(600.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "--rounds=0: expected 1 or more"),
        (["--type", "i32"], "--type=i32: no type of weights; accepted are f32, f16, "),
    ],
)
def test_a_mistake_is_one_line(
    runs: list[CalibrationRun], refused: Refused, arguments: list[str], message: str
) -> None:
    assert message in refused(["calibrate", *arguments])
    assert runs == []


@pytest.mark.usefixtures("runs")
def test_a_disturbed_calibration_stores_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: Streams, tmp_path: Path
) -> None:
    disturbed = Mock(side_effect=MeasurementError("operators: disturbed in each of 3 tries"))
    monkeypatch.setattr("perfsuite.experiments.calibration.command.calibrate", disturbed)
    assert main(["calibrate"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == "perfsuite: error: operators: disturbed in each of 3 tries"
    assert not (tmp_path / "cache" / "calibrations").exists()
