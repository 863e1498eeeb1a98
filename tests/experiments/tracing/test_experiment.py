"""Cases of ``--perf-trace`` in whole runs of the plugin, with traces that were made before."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# What a run of the plugin imports on its own it forgets again, and what is replaced here would be another copy.
import perfsuite.experiments.tracing.undisturbed_trace  # noqa: F401
from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.engine_trace import TraceRecorder
from perfsuite.records.events import EngineRecord
from perfsuite.trace.recorded_trace import recorded_trace
from tests.fake_device import FakeDevice, HostRuns

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
    monkeypatch.setattr("perfsuite.experiments.tracing.undisturbed_trace.undisturbed_trace", found.trace)
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


@pytest.mark.parametrize("argument", ["--backend=opencl", "--against-args=threads=1"])
def test_what_has_no_such_trace_is_refused(runs: HostRuns, recorder: Recorder, argument: str) -> None:
    result = runs("--perf-trace", argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--perf-trace" in result.stderr.str()
    assert recorder.recorders == []
