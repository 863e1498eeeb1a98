"""The order in which a roofline is recorded, with every measurement replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.ceiling import IndependentRate
from perfsuite.expectation.roofline.roofline_run import Row
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.expectation.roofline.sweeps import BASE, SweepPoint
from perfsuite.experiments.roofline.recording import Progress, RooflineRequest, has_memory, record_roofline
from perfsuite.experiments.scenario_bench import Bench
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.device_survey import SurveyRequest
from perfsuite.measure.engine import find_engine
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve
from tests.synthetic_roofline import ceilings, independent_rate, memory_record, row

MODEL = "smollm2-135m-l2-q8_0"


def point(sweep: str, setting: str = "p16-g4") -> SweepPoint:
    workload = llama_workload(resolve(MODEL, cache_dir=Path("/nowhere")), find_scenario(setting))
    return SweepPoint(sweep=sweep, setting=setting, value=None, workload=workload, n_threads=2)


class Steps:
    """Notes each step, and answers it with what was made up."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.shares: Iterator[float] = iter((0.9, 1.0))
        self.engine = "build 9"
        self.failing = ""

    def note(self, step: str) -> None:
        self.taken.append(step)
        if step == self.failing:
            raise MeasurementError(f"{step}: failed")

    def survey(self, _: SurveyRequest, __: Progress) -> Survey:
        self.note("survey again" if "survey" in self.taken else "survey")
        return Survey(ceilings=ceilings(share=next(self.shares)))

    def bounds(self, _: SurveyRequest, __: Progress) -> tuple[IndependentRate, ...]:
        self.note("bounds")
        return (independent_rate(),)

    def rows(self, points: Sequence[SweepPoint], bench: Bench, _: Progress) -> tuple[tuple[Row, ...], str]:
        self.note(f"rows of {points[0].sweep}, {'with' if bench.records_operators else 'without'} operators")
        return tuple(row(sweep=each.sweep, setting=each.setting) for each in points), self.engine

    def memories(self, points: Sequence[SweepPoint], _: Bench, __: Progress) -> tuple[MemoryRecord, ...]:
        self.note("memory")
        return tuple(replace(memory_record(), scenario=each.setting) for each in points)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    found = Steps()
    home = "perfsuite.experiments.roofline.recording"
    monkeypatch.setattr(f"{home}.survey_device", found.survey)
    monkeypatch.setattr(f"{home}.measure_bounds", found.bounds)
    monkeypatch.setattr(f"{home}.measure_rows", found.rows)
    monkeypatch.setattr(f"{home}.measure_memories", found.memories)
    return found


def request(
    folder: Path, *, base: tuple[SweepPoint, ...] = (), sweeps: tuple[SweepPoint, ...] = (), with_bounds: bool = False
) -> RooflineRequest:
    profile = find_profile("host")
    return RooflineRequest(
        survey=SurveyRequest(
            profile=profile, n_threads=2, thread_counts=(1, 2), board=LocalBoard(cache_dir=folder), log_dir=folder
        ),
        base=base,
        sweeps=sweeps,
        bench=Bench(engine=find_engine(), profile=profile, board=LocalBoard(cache_dir=folder)),
        with_bounds=with_bounds,
    )


def silent(_: str) -> None:
    """Say nothing."""


def test_ceilings_are_taken_before_and_after(steps: Steps, tmp_path: Path) -> None:
    run = record_roofline(request(tmp_path, base=(point(BASE),)), silent)
    assert steps.taken == ["survey", "rows of base, with operators", "memory", "survey again"]
    assert run.survey.of(n_threads=2).fp32_flops_per_s == 400e9
    assert {each.rate.n_rounds for each in run.survey.ceilings if each.rate} == {10}
    assert (run.device, run.n_threads) == ("host", 2)
    assert run.recorded_at.endswith("+00:00")
    assert run.fingerprint["soc"]


def test_programs_of_others_are_asked_only_where_wanted(steps: Steps, tmp_path: Path) -> None:
    assert record_roofline(request(tmp_path, with_bounds=True), silent).bounds == (independent_rate(),)
    assert steps.taken == ["survey", "bounds", "memory", "survey again"]
    steps.shares = iter((1.0, 1.0))
    run = record_roofline(request(tmp_path), silent)
    assert (run.bounds, run.rows, run.engine) == ((), (), "")


def test_operators_are_rows_of_the_base_alone(steps: Steps, tmp_path: Path) -> None:
    run = record_roofline(request(tmp_path, base=(point(BASE),), sweeps=(point("depth"), point("kv"))), silent)
    assert steps.taken[1:3] == ["rows of base, with operators", "rows of depth, without operators"]
    assert [each.sweep for each in run.rows] == [BASE, "depth", "kv"]
    assert run.engine == "build 9"


def test_memory_is_that_of_scenarios_and_of_the_base(steps: Steps, tmp_path: Path) -> None:
    points = (point("scenario", "siso"), point("depth", "p128-g24"), point("scenario", "liso"))
    run = record_roofline(request(tmp_path, base=(point(BASE, "silo"),), sweeps=points), silent)
    assert [record.scenario for record in run.memory] == ["silo", "siso", "liso"]
    assert [has_memory(each) for each in points] == [True, False, True]


@pytest.mark.parametrize("failing", ["survey", "memory"])
def test_a_step_that_fails_ends_the_run(steps: Steps, tmp_path: Path, failing: str) -> None:
    steps.failing = failing
    with pytest.raises(MeasurementError, match=failing):
        record_roofline(request(tmp_path, base=(point(BASE),)), silent)
    assert steps.taken[-1] == failing


def test_ceilings_that_cannot_be_taken_again_lose_nothing(steps: Steps, tmp_path: Path) -> None:
    """What was measured stands under the ceilings that were taken before, and why is reported."""
    steps.failing = "survey again"
    told: list[str] = []
    run = record_roofline(request(tmp_path, base=(point(BASE),)), told.append)
    assert len(run.rows) == 1
    assert run.survey.of(n_threads=2).fp32_flops_per_s == pytest.approx(0.9 * 400e9)
    assert told[-1] == "the ceilings were not measured again: survey again: failed"
