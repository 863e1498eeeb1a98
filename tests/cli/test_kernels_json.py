"""What ``perfsuite kernels --json`` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perfsuite.cli.kernels_json import print_view
from perfsuite.records.events import Phase
from perfsuite.verdict.traced_view import TracedView

from ..synthetic_opencl_backend import opencl_backend
from ..synthetic_view import growth, horizon, kernel, phase_view, traced_view, workload
from .conftest import Streams

KERNELS = tuple(kernel(f"kernel_{number}", 1000 * (20 - number)) for number in range(12))
DECODE = phase_view(Phase.DECODE, KERNELS, 0.5, 0.25)


def printed(traced: TracedView, capsys: Streams, folder: Path) -> dict[str, Any]:
    """Return what is printed."""
    print_view(traced, workload(), opencl_backend(folder))
    plain: dict[str, Any] = json.loads(capsys.readouterr().out)
    return plain


def test_all_kernels_of_a_phase_are_there(capsys: Streams, tmp_path: Path) -> None:
    """However many they are, in their order, with their operators and what they waited for apart."""
    (phase,) = printed(traced_view(DECODE), capsys, tmp_path)["phases"]
    assert (phase["phase"], phase["n_occurrences"], phase["duration_ns"]) == ("decode", 2, 2_000_000)
    assert (phase["operators_ratio"], phase["idle_ratio"]) == (0.875, [0.5, 0.25])
    assert [each["name"] for each in phase["kernels"]] == [each.name for each in KERNELS]
    first = phase["kernels"][0]
    assert first["operators"] == ["0"]
    assert first["execution"] == {"total_ns": 20_000, "median_ns": 5000, "p95_ns": 5000}
    assert set(first) >= {"n", "n_left_out", "share_ratio", "queueing", "dispatch"}


def test_growth_and_forecasts_are_there(capsys: Streams, tmp_path: Path) -> None:
    """What is derived from the fit is told beside it; what has no outcome is null."""
    traced = traced_view(
        DECODE, growth=(growth("kernel_1", 50.0), growth("kernel_2", 0.5)), forecast_errors=(horizon(64, 0),)
    )
    plain = printed(traced, capsys, tmp_path)
    assert [(each["name"], each["grows"]) for each in plain["growth"]] == [("kernel_1", True), ("kernel_2", False)]
    assert plain["growth"][0]["growth_ratio"] == 1.5
    assert len(plain["growth"][0]["step_totals_ns"]) == 11
    assert plain["forecast_errors"][0]["median_percent"] is None


def test_the_run_says_where_it_was(capsys: Streams, tmp_path: Path) -> None:
    """Workload, engine, device with its compatibility layer, clocks, and what cannot be trusted."""
    plain = printed(traced_view(DECODE, problems=("a problem",), complaint="a complaint"), capsys, tmp_path)
    assert (plain["workload"], plain["engine"]) == (workload().prefix, "llama 1, ggml 1 abc")
    assert plain["device"] == opencl_backend(tmp_path).fingerprint
    assert plain["problems"] == ["a problem", "a complaint"]
    (clock,) = plain["clocks"]
    assert isinstance(clock["basis"], str)
    assert clock["error_ns"] >= 0
    assert printed(traced_view(DECODE), capsys, tmp_path)["problems"] == []
