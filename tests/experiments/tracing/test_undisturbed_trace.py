"""Tracing until one process had the processors for itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.experiments.recorder_traces import RecorderTrace
from perfsuite.experiments.tracing.undisturbed_trace import undisturbed_trace
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import N_TRIES
from perfsuite.testing.engine_traces import small_trace
from perfsuite.trace.recording import read_recording
from tests.synthetic_plans import PLAN, QUIET


@dataclass
class Runs:
    n_disturbed: int
    recorders: list[str] = field(default_factory=list)

    def run(self, plan: LlamaPlan, recorder: str, _: Board) -> RecorderTrace:
        """Return a trace of as many tokens as there were runs."""
        self.recorders.append(recorder)
        waiting_ns = 10**9 if len(self.recorders) <= self.n_disturbed else 0
        contention = {**QUIET, "waiting_ns": waiting_ns, "others_ratio": None}
        return RecorderTrace(payload={"contention": contention}, trace=small_trace(len(self.recorders)))


def _trace(monkeypatch: pytest.MonkeyPatch, runs: Runs, folder: Path) -> str | None:
    monkeypatch.setattr("perfsuite.experiments.tracing.undisturbed_trace.traced_by_engine", runs.run)
    trace, complaint = undisturbed_trace(
        PLAN, "preload", find_profile("host"), LocalBoard(cache_dir=folder), folder=folder
    )
    assert read_recording(folder).events.tolist() == trace.events.tolist()
    return complaint


def test_a_disturbed_process_is_run_again_a_few_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first that had no competition is kept, or the last; the trace may replace an earlier run's."""
    runs = Runs(n_disturbed=1)
    assert _trace(monkeypatch, runs, tmp_path / "trace") is None
    assert runs.recorders == ["preload", "preload"]
    runs = Runs(n_disturbed=99)
    for _ in range(2):
        complaint = _trace(monkeypatch, runs, tmp_path / "trace")
        assert complaint is not None
        assert "waited" in complaint
    assert len(runs.recorders) == 2 * N_TRIES
