"""Cases of ``--perf-trace``: whole runs with traces that were made before, and tracing until nobody disturbs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import perfsuite.experiments.tracing.experiment  # noqa: F401
from perfsuite.device.profile import Profile, find_profile
from perfsuite.errors import MeasurementError
from perfsuite.experiments.recorder_traces import RecorderTrace
from perfsuite.experiments.tracing.experiment import undisturbed_trace
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import N_TRIES
from perfsuite.records.engine_trace import TraceRecorder
from perfsuite.records.events import EngineRecord
from perfsuite.testing.engine_traces import small_trace
from perfsuite.trace.recorded_trace import recorded_trace
from perfsuite.trace.recording import read_recording
from tests.fake_device import FakeDevice, HostRuns
from tests.synthetic_plans import PLAN, QUIET

#: What each run has besides.
USUAL = ("--threads=2", "-o", "perf_session_spread=0.01")


@dataclass
class Recorder:
    record: EngineRecord
    complaint: str | None = None
    error: Exception | None = None
    recorders: list[str] = field(default_factory=list)

    def trace(self, plan: LlamaPlan, recorder: str, profile: Profile, _: Board, *, folder: Path) -> Any:
        assert (plan.n_repetitions, profile.name) == (1, "host")
        assert folder.name == f"trace-{recorder}"
        self.recorders.append(recorder)
        if self.error:
            raise self.error
        return recorded_trace(self.record, TraceRecorder.CALLBACK), self.complaint


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, fake_device: FakeDevice, stored_record: EngineRecord) -> Recorder:
    found = Recorder(record=stored_record)
    monkeypatch.setattr("perfsuite.experiments.tracing.experiment.undisturbed_trace", found.trace)
    return found


def test_cases_are_listed_and_nothing_is_run(runs: HostRuns, recorder: Recorder) -> None:
    out = runs("--perf-trace", "--collect-only", "-q", "-k", "test_trace").stdout.str()
    prefix = "trace/smollm2-135m-l2-q8_0/siso"
    for name in ("balance/decode/ffn_up", "attention_growth", "decode_linearity"):
        assert f"[{prefix}/{name}]" in out
    assert "expert_reuse" not in out
    assert recorder.recorders == []


def test_one_process_serves_all_cases(runs: HostRuns, recorder: Recorder) -> None:
    """It is recorded once; what a callback does not see, the balance of threads, is INVALID and says so."""
    runs("--perf-trace", "-k", "test_trace")
    found = runs.cases("trace")
    assert recorder.recorders == ["preload"]
    balance = found["trace/smollm2-135m-l2-q8_0/siso/balance/decode/ffn_up"]
    assert balance["outcome"] == "invalid"
    assert balance["reason"]
    assert found["trace/smollm2-135m-l2-q8_0/siso/decode_linearity"]["outcome"] != "invalid"


def test_experts_have_a_process_of_their_own(runs: HostRuns, recorder: Recorder) -> None:
    """Reading what a router chose cuts the graph, so that times are taken elsewhere."""
    runs("--perf-trace", "-k", "expert_reuse", model="qwen1.5-moe-a2.7b-l2-q8_0")
    assert recorder.recorders == ["experts"]
    (case,) = runs.cases("trace").values()
    assert case["id"].endswith("/expert_reuse")


@pytest.mark.parametrize("is_error", [False, True], ids=["disturbed", "failed"])
def test_a_run_that_tells_nothing_decides_nothing(runs: HostRuns, recorder: Recorder, is_error: bool) -> None:
    """Its complaint is the reason of each case; a run that fails fails as a whole besides."""
    reason = "threads waited 9 % of the time"
    recorder.complaint, recorder.error = (None, MeasurementError(reason)) if is_error else (reason, None)
    result = runs("--perf-trace", "-k", "test_trace")
    assert {(each["outcome"], each["reason"]) for each in runs.cases("trace").values()} == {("invalid", reason)}
    assert is_error is (result.ret == pytest.ExitCode.TESTS_FAILED)


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
    monkeypatch.setattr("perfsuite.experiments.tracing.experiment.traced_by_engine", runs.run)
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
