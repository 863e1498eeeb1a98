"""A worker that takes one step after the other, with the engine that is installed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.watching import DEVICE_SAMPLES, WAS_THROTTLED
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.trace_levels import TraceLevel

from .conftest import led, spans_of

LIMIT_S = 60.0


def test_steps_record_what_a_whole_replicate_does(small_plan: LlamaPlan) -> None:
    whole = run_worker(small_plan)
    with led(small_plan) as worker:
        worker.warm_up(small_plan)
        worker.run(small_plan)
        payload = worker.payload()
        assert payload["pid"] == worker.pid
    assert set(payload) == set(whole) - {DEVICE_SAMPLES, WAS_THROTTLED}
    spans, expected = (EngineRecord.from_plain(each["engine"]).spans for each in (payload, whole))
    assert [(span.phase, span.token) for span in spans] == [(span.phase, span.token) for span in expected]


def test_runs_add_up_and_warm_ups_leave_no_trace(small_plan: LlamaPlan) -> None:
    with led(small_plan) as worker:
        for _ in range(2):
            worker.warm_up(small_plan.one_token)
            worker.run(replace(small_plan, n_repetitions=1))
        record = EngineRecord.from_plain(worker.payload()["engine"])
    assert [span.repetition for span in spans_of(record, Phase.PREFILL)] == [0, 1]


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("dance", "the step 'dance', which is not known"),
        ("warm_up 99999999999 0 0", "a whole number of 32 bits"),
        ("flush 1", "names no OpenCL layer"),
    ],
)
def test_a_step_that_cannot_be_taken_ends_it_with_a_reason(small_plan: LlamaPlan, step: str, why: str) -> None:
    with led(small_plan) as worker, pytest.raises(MeasurementError, match=why):
        worker.ask(step)


def test_no_step_takes_longer_than_the_limit(small_plan: LlamaPlan) -> None:
    told = r"did not finish in time and was stopped \(its limit is 0 s\); use a smaller"
    with pytest.raises(MeasurementError, match=told), led(small_plan, 0.0):
        pass


def test_the_ebpf_recorder_follows_the_run_alone(small_plan: LlamaPlan, requires_ebpf: Path, tmp_path: Path) -> None:
    log_path = tmp_path / "log"
    ebpf = EbpfPlan(helper=str(requires_ebpf), log_path=str(log_path), levels=int(TraceLevel.TOKEN))
    payload = run_worker(replace(small_plan, ebpf=ebpf))
    assert payload["ebpf_notes"] == []
    assert log_path.stat().st_size > 0
