"""The device of ``perfsuite forecast``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.threads import default_threads
from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.measure.ceiling_store import best_ceilings
from tests.command_streams import Refused, Streams

ARGUMENTS = ["forecast", "--architecture", "smollm2-135m-q8_0", "--prompt", "64", "--new-tokens", "8"]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, with nothing in it."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path))
    return tmp_path


def _level(working_set_bytes: int, rate: float) -> Bandwidth:
    return Bandwidth(
        working_set_bytes=working_set_bytes, read_bytes_per_s=rate, copy_bytes_per_s=rate / 2, triad_bytes_per_s=rate
    )


CEILINGS = Ceilings(
    n_threads=default_threads(),
    bandwidths=(_level(10**5, 9e11), _level(10**9, 2e10)),
    fp32_flops_per_s=1e11,
    int8_flops_per_s=4e11,
    f16_flops_per_s=None,
    dispatch_ns=500,
)


def test_the_host_has_the_ceilings_that_it_has_shown(empty_cache: Path, capsys: Streams) -> None:
    """Peak of 32-bit floats, memory's read bandwidth and the cost of a dispatch come from the stored probes."""
    best_ceilings(CEILINGS, host_fingerprint(), empty_cache)
    assert main([*ARGUMENTS, "--device", "host", "--memory-efficiency", "0.5", "--json"]) == 0
    hardware = json.loads(capsys.readouterr().out)["hardware"]
    assert hardware["device"] == "host"
    assert hardware["peak_flops_per_s"] == pytest.approx(1e11)
    assert hardware["bandwidth_bytes_per_s"] == pytest.approx(2e10)
    assert hardware["dispatch_s"] == pytest.approx(5e-7)
    assert (hardware["compute_efficiency_ratio"], hardware["memory_efficiency_ratio"]) == (1.0, 0.5)


def test_a_given_dispatch_counts_more_than_a_measured_one(empty_cache: Path, capsys: Streams) -> None:
    """--dispatch-us overrides what the probes found."""
    best_ceilings(CEILINGS, host_fingerprint(), empty_cache)
    assert main([*ARGUMENTS, "--device", "host", "--dispatch-us", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hardware"]["dispatch_s"] == 0.0


@pytest.mark.parametrize("kind", ["nothing", "broken", "other threads"])
def test_a_host_without_ceilings_says_how_to_get_them(empty_cache: Path, refused: Refused, kind: str) -> None:
    """Where nothing usable is stored, the message names the commands that measure it."""
    if kind != "nothing":
        n_threads = CEILINGS.n_threads + (kind == "other threads")
        best_ceilings(replace(CEILINGS, n_threads=n_threads), host_fingerprint(), empty_cache)
    if kind == "broken":
        (stored,) = (empty_cache / "ceilings").iterdir()
        stored.write_text("{")
    told = refused([*ARGUMENTS, "--device", "host"])
    assert f"--device=host: no ceilings of this machine with {CEILINGS.n_threads} threads are stored" in told
    assert "'perfsuite calibrate' or 'pytest --device=host', or give --tops and --bandwidth" in told


def test_a_profile_without_peaks_asks_for_figures(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device elsewhere was not measured here, and what its data sheet says is no ceiling."""
    monkeypatch.setattr("perfsuite.cli.forecast_device.profile_names", lambda: ("board", "host"))
    told = refused([*ARGUMENTS, "--device", "board"])
    assert "--device=board: forecasts stand on measured ceilings" in told
    assert "give --tops and --bandwidth ('perfsuite devices show board' has the data sheet's)" in told
