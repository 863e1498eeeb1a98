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
from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.grid import standard_shapes, typical_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.calibrate import CalibrationRun
from perfsuite.measure.ceiling_store import find_calibration
from perfsuite.measure.plan import Plan, ProbePlan
from perfsuite.testing.workers import replace_workers
from tests.command_streams import Streams
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
    replace_workers(monkeypatch, probed)
    return asked


def test_a_calibration_is_stored_for_this_device_engine_and_threads(
    runs: list[CalibrationRun], capsys: Streams, tmp_path: Path
) -> None:
    """What was measured is found by the fingerprint, the build and the number of threads, and by no other number."""
    assert main(["calibrate", "--threads", "3", "--type=Q5_K", "--type=bf16", "--rounds=1"]) == 0
    (run,) = runs
    assert (run.profile.name, run.plan.is_quick) == ("host", False)
    assert (run.plan.shapes, run.plan.n_rounds) == (standard_shapes(("q5_k", "bf16")), 1)
    found = find_calibration(host_fingerprint(), run.engine.build_id, 3, tmp_path / "cache")
    assert found is not None
    assert found.compositions == COMPOSITIONS
    assert find_calibration(host_fingerprint(), run.engine.build_id, 2, tmp_path / "cache") is None
    assert str(tmp_path / "cache") in capsys.readouterr().err


@pytest.mark.usefixtures("runs")
def test_programs_read_json(capsys: Streams) -> None:
    assert main(["calibrate", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["operators"]) == len(typical_shapes(standard_shapes()))
    for operator in plain["operators"]:
        assert operator["compute_ratio"] == pytest.approx(operator["flops_per_s"] / 4e11)
        assert operator["memory_ratio"] == pytest.approx(operator["bytes_per_s"] / 5e10)
    assert set(plain["phases"]) == {"prefill", "decode"}
    prefill, decode = plain["phases"]["prefill"], plain["phases"]["decode"]
    assert prefill["overall"]["ratio"] == pytest.approx(1.25, rel=0.001)
    assert {kind: each["ratio"] for kind, each in decode["kinds"].items()} == {"MUL_MAT": pytest.approx(1.1, rel=0.001)}
    assert decode["rest_ns"] + 30 * decode["rest_ns_per_operator"] == pytest.approx(600.0)


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
