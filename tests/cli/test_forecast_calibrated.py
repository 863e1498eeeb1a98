"""The calibrated part of ``perfsuite forecast``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.threads import default_threads
from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.measure.calibration_store import store_calibration
from perfsuite.measure.ceiling_store import best_ceilings
from perfsuite.measure.launch import environment_engine
from tests.command_streams import Streams

from ..synthetic_calibration import calibration

FORECAST = [
    "forecast",
    "--architecture",
    "smollm2-135m-q8_0",
    "--prompt",
    "64",
    "--new-tokens",
    "8",
    "--json",
]
N_THREADS = default_threads()


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, which holds ceilings and a calibration of this machine."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path))
    memory = Bandwidth(working_set_bytes=10**9, read_bytes_per_s=2e10, copy_bytes_per_s=1e10, triad_bytes_per_s=1e10)
    ceilings = Ceilings(
        n_threads=N_THREADS,
        bandwidths=(memory,),
        fp32_flops_per_s=1e11,
        int8_flops_per_s=4e11,
        f16_flops_per_s=None,
        dispatch_ns=500,
    )
    best_ceilings(ceilings, host_fingerprint(), tmp_path)
    recorded = calibration(fingerprint=host_fingerprint(), n_threads=N_THREADS)
    store_calibration(recorded, environment_engine().build_id, tmp_path)
    return tmp_path


def _calibrated(arguments: list[str], capsys: Streams) -> Any:
    assert main([*FORECAST, *arguments]) == 0
    return json.loads(capsys.readouterr().out)["calibrated"]


def test_the_host_has_the_forecast_of_its_calibration(stored: Path, capsys: Streams) -> None:
    """Both latencies come with an interval, and a longer prompt takes longer."""
    found = _calibrated(["--device", "host"], capsys)
    assert found["recorded_at"] == "2025-01-02T03:04:05+00:00"
    for latency in ("ttft_s", "tpot_s"):
        assert 0 < found[latency]["lower"] < found[latency]["expected"] < found[latency]["upper"]
    longer = _calibrated(["--device", "host", "--prompt", "512"], capsys)
    assert longer["ttft_s"]["expected"] > found["ttft_s"]["expected"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tops", "1", "--bandwidth", "10"],
        ["--device", "host", "--batch", "2"],
        ["--device", "host", "--tile", "64"],
        ["--device", "host", "--draft", "smollm2-135m-q8_0"],
        ["--device", "host", "--architecture", "smollm2-135m", "--variant", "bf16-int4", "--conventions", "paper"],
    ],
    ids=["other device", "batch", "tile", "draft", "paper"],
)
def test_what_a_calibration_does_not_cover_has_none(stored: Path, capsys: Streams, arguments: list[str]) -> None:
    """Another device, several sequences, tiles, a draft and the paper's conventions are forecast by rates alone."""
    assert _calibrated(arguments, capsys) is None


def test_a_machine_without_a_calibration_has_none(stored: Path, capsys: Streams) -> None:
    """Ceilings alone give no interval."""
    for path in (stored / "calibrations").iterdir():
        path.unlink()
    assert _calibrated(["--device", "host"], capsys) is None


def test_people_read_the_interval(stored: Path, capsys: Streams) -> None:
    """One line tells the calibrated latencies, and that the table above knows ceilings alone."""
    assert main([*FORECAST[:-1], "--device", "host"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "by the calibration of 2025-01-02T03:04:05+00:00: TTFT " in out
    assert "above, the ceilings alone" in out
