"""``perfsuite held-out``, with its measurements replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from perfsuite.cli import main
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.machine import default_threads
from perfsuite.expectation.timing.engine_times import EngineTimes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.experiments.held_out.measurement import HELD_OUT, HeldOutRow
from perfsuite.measure.ceiling_store import store_calibration
from perfsuite.measure.environment import environment_engine
from tests.command_streams import Refused, Streams
from tests.synthetic_calibration import calibration, composition

LAYERS = {OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536): 30}


def _rows(
    _: EngineTimes, workloads: Sequence[tuple[str, int]], *, progress: Callable[[str], None], **__: object
) -> tuple[HeldOutRow, ...]:
    """Return two rows: a TTFT that is 10 % too slow, and a TPOT that is half of what was measured."""
    progress("1 of 1")
    ((name, n_prompt), *_) = workloads
    bounds = {"expected_ns": 1.1e6, "lower_ns": 0.9e6, "upper_ns": 1.3e6}
    return tuple(
        HeldOutRow(weights=name, n_prompt=n_prompt, latency=latency, measured_ns=measured_ns, **bounds)
        for latency, measured_ns in (("ttft", 1e6), ("tpot", 2.2e6))
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Mock:
    found = Mock(side_effect=_rows)
    monkeypatch.setattr("perfsuite.experiments.held_out.command.measure_held_out", found)
    return found


def store(folder: Path, n_threads: int) -> None:
    own = calibration(composition(LAYERS, ratio=1.2), fingerprint=host_fingerprint(), n_threads=n_threads)
    store_calibration(own, environment_engine().build_id, folder / "cache")


@pytest.fixture
def calibrated(tmp_path: Path) -> None:
    store(tmp_path, default_threads())


@pytest.mark.usefixtures("calibrated")
def test_the_stored_calibration_forecasts_the_standard_list(asked: Mock, tmp_path: Path) -> None:
    assert main(["held-out"]) == 0
    (times, workloads), options = asked.call_args
    assert workloads == HELD_OUT
    assert times.factors["decode"].overall.ratio == pytest.approx(1.2, rel=0.001)
    assert options["n_threads"] == default_threads()
    assert options["models_dir"] == tmp_path / "cache" / "models"
    assert options["profile"].name == "host"


@pytest.mark.usefixtures("calibrated")
def test_workloads_may_be_named(asked: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is weights and a prompt length; a path may hold colons of its own."""
    monkeypatch.setattr("perfsuite.experiments.held_out.command.resolve", lambda name, cache_dir: None)
    assert main(["held-out", "--workload", "llama-3.2-1b-q4_0:128", "--workload", "/a:b/x.gguf:64"]) == 0
    assert asked.call_args.args[1] == (("llama-3.2-1b-q4_0", 128), ("/a:b/x.gguf", 64))


@pytest.mark.usefixtures("asked", "calibrated")
def test_programs_read_json(capsys: Streams) -> None:
    assert main(["held-out", "--json", "--workload", "smollm2-135m-q8_0:64"]) == 0
    plain = json.loads(capsys.readouterr().out)
    first, second = plain["rows"]
    times = {"expected_ns": 1.1e6, "lower_ns": 0.9e6, "upper_ns": 1.3e6, "measured_ns": 1e6}
    scores = {"error_ratio": pytest.approx(0.1), "is_inside": True}
    scores |= {"drift_ratio": 1.0, "error_without_drift_ratio": pytest.approx(0.1)}
    assert first == {"weights": "smollm2-135m-q8_0", "n_prompt": 64, "latency": "ttft", **times, **scores}
    assert (second["latency"], second["error_ratio"], second["is_inside"]) == ("tpot", pytest.approx(-0.5), False)
    assert [each["latency"] for each in plain["summaries"]] == ["ttft", "tpot"]
    assert plain["summaries"][1]["mean_absolute_error_ratio"] == pytest.approx(0.5)


def test_without_a_calibration_of_the_threads_it_says_what_to_run(
    asked: Mock, refused: Refused, tmp_path: Path
) -> None:
    """Nothing is measured where there is nothing to compare with: what three threads took says nothing about five."""
    store(tmp_path, 3)
    message = refused(["held-out", "--threads", "5"])
    assert "no calibration with 5 threads is stored; run 'perfsuite calibrate --device=host'" in message
    asked.assert_not_called()
    assert main(["held-out", "--threads", "3"]) == 0
    assert asked.call_args.kwargs["n_threads"] == 3
