"""Workloads of sweeps measured in turn, with the workers replaced except one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import ArchitectureError, MeasurementError
from perfsuite.expectation.cases import operator_cases
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.expectation.roofline.sweeps import SweepPoint
from perfsuite.experiments.scenario_bench import MIN_PROCESSES, N_PROCESSES, Bench, measure_rows
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import find_engine
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.case import REST_ROLE
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.testing.workers import replace_workers
from perfsuite.trace.samples import replicate_samples
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve
from tests.synthetic_plans import CONTENDED, QUIET
from tests.synthetic_roofline import roofline_run, survey

MODEL = "smollm2-135m-l2-q8_0"


def point(scenario: str = "p16-g4", *, n_threads: int = 2) -> SweepPoint:
    workload = llama_workload(resolve(MODEL, cache_dir=Path("/nowhere")), find_scenario(scenario))
    return SweepPoint(sweep="length", setting=scenario, value=7.0, workload=workload, n_threads=n_threads)


def spans(prefill_ns: int, decodes_ns: tuple[int, ...], repetition: int = 0) -> list[Span]:
    """Return a prefill, its decodes, and what belongs to neither."""
    lengths = [(Phase.PREFILL, prefill_ns), *((Phase.DECODE, each) for each in decodes_ns), (Phase.COPY, 10**6)]
    return [
        Span(phase=phase, repetition=repetition, token=0, n_tokens=1, start_ns=5, end_ns=5 + duration_ns)
        for phase, duration_ns in lengths
        if duration_ns
    ]


def record(*found: Span) -> EngineRecord:
    return EngineRecord(engine_version="build 9", spans=found, graphs=(), n_dropped=0)


class Machine:
    """Answers each process with a record, and notes in which order it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plans: list[LlamaPlan] = []
        #: Records of the processes of each prompt length in turn; the last one again and again.
        self.records: list[EngineRecord] = [record(*spans(1000, (100, 120, 110, 130)))]
        #: Which processes are disturbed, counted from 0.
        self.disturbed: set[int] = set()

    def run(self, plan: LlamaPlan, **_: object) -> dict[str, Any]:
        """Return what a worker would send."""
        number = len(self.plans)
        before = sum(each.n_prompt == plan.n_prompt for each in self.plans)
        self.plans.append(plan)
        found = self.records[min(before, len(self.records) - 1)]
        return {"engine": found.to_plain(), "contention": CONTENDED if number in self.disturbed else QUIET}

    def measured(self, *points: SweepPoint, **changes: Any) -> tuple[Row, ...]:
        """Return the rows of workloads."""
        return measure_rows(points or (point(),), bench(self.folder, **changes), lambda text: None)[0]

    @property
    def turns(self) -> list[int]:
        """The lengths of the prompts in the order in which they ran."""
        return [plan.n_prompt for plan in self.plans]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    found = Machine(tmp_path)
    replace_workers(monkeypatch, found.run)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize", lambda weights, cache_dir: cache_dir / weights.name
    )
    return found


def bench(folder: Path, **changes: Any) -> Bench:
    return Bench(engine=find_engine(), profile=find_profile("host"), board=LocalBoard(cache_dir=folder), **changes)


def test_a_workload_has_three_rows(machine: Machine) -> None:
    """Prefill, decode and both together: the middle token of a process, and the prompt with all its tokens."""
    rows = machine.measured()
    assert [(row.kind, row.role) for row in rows] == [
        (RowKind.PREFILL, ""),
        (RowKind.DECODE, ""),
        (RowKind.WHOLE_RUN, ""),
    ]
    assert [row.samples_ns for row in rows] == [(1000,) * 5, (115,) * 5, (1460,) * 5]
    assert {(row.sweep, row.setting, row.value) for row in rows} == {("length", "p16-g4", 7.0)}
    assert {row.subject.name for row in rows} == {f"{MODEL}/p16-g4/t2"}


def test_samples_are_those_of_processes(machine: Machine) -> None:
    """Of three repetitions the median prompt, the median of all tokens and the median of the wholes are taken."""
    machine.records = [
        record(*spans(1000, (100, 100), 0), *spans(1100, (200, 300), 1), *spans(5000, (100, 150), 2)),
    ]
    prefill, decode, whole = machine.measured(n_processes=1)
    assert (prefill.samples_ns, decode.samples_ns, whole.samples_ns) == ((1100,), (125,), (1600,))


def test_workloads_take_turns(machine: Machine) -> None:
    lengths = (16, 17, 18, 19, 20, 21)
    machine.measured(*(point(f"p{length}-g4") for length in lengths))
    rounds = [machine.turns[start : start + len(lengths)] for start in range(0, len(machine.turns), len(lengths))]
    assert len(rounds) == N_PROCESSES
    assert [sorted(each) for each in rounds] == [list(lengths)] * N_PROCESSES
    assert len({tuple(each) for each in rounds}) > 1


def test_a_disturbed_process_is_run_again_and_not_counted(machine: Machine) -> None:
    machine.records = [record(*spans(each, (100,))) for each in (1, 2, 3, 4, 5, 6, 7)]
    machine.disturbed = {0, 3}
    (prefill, *_) = machine.measured()
    assert (prefill.samples_ns, prefill.time_ns) == ((2, 3, 5, 6, 7), 5)
    assert len(machine.plans) == 7


def test_a_busy_machine_is_told_after_twice_the_rounds(machine: Machine) -> None:
    """With fewer than three undisturbed processes of ten there is no row but the reason, with the workload's name."""
    machine.disturbed = set(range(100)) - {2, 5, 9}
    assert {len(row.samples_ns) for row in machine.measured()} == {MIN_PROCESSES}
    machine.plans.clear()
    machine.disturbed.add(9)
    with pytest.raises(MeasurementError) as told:
        machine.measured()
    assert len(machine.plans) == 2 * N_PROCESSES
    assert str(told.value) == (
        f"sweep length, p16-g4: 2 undisturbed processes of 10, needed are {MIN_PROCESSES}; "
        "threads waited 50 % of the time (limit 2 %) for a processor; run it when nothing else runs"
    )


def test_what_cannot_be_run_runs_nothing(machine: Machine, tmp_path: Path) -> None:
    """A quantised cache without flash attention is refused before the workloads in front of it have run."""
    weights = resolve(MODEL, cache_dir=tmp_path)
    refused = llama_workload(weights, find_scenario("siso"), flash_attn=False, type_k="q8_0", type_v="q8_0")
    with pytest.raises(ArchitectureError, match="needs flash attention"):
        machine.measured(point(), replace(point(), workload=refused))
    assert machine.plans == []


@pytest.fixture
def recorded(machine: Machine, stored_record: EngineRecord) -> Machine:
    """Let every process send the stored record, which has operators."""
    machine.records = [stored_record]
    return machine


def test_operators_that_compute_something_are_rows_where_they_were_recorded(
    recorded: Machine, stored_record: EngineRecord
) -> None:
    """Gathers and copies have no place on a roofline, though they are recorded; nor has the rest of a phase."""
    measured_rows = recorded.measured(point("siso"), records_operators=True)
    rows = [row for row in measured_rows if row.kind is RowKind.OPERATOR]
    samples = replicate_samples(stored_record).operator_ns
    assert {plan.recorder for plan in recorded.plans} == {"callback"}
    roles = {row.role for row in rows}
    assert {"prefill/ffn_up", "decode/ffn_up", "decode/result_output"} <= roles
    for row in rows:
        phase, role = row.role.split("/")
        assert row.samples_ns == (samples[Phase(phase)][role],) * N_PROCESSES
        assert row.work.counts_activations
        assert row.case == f"roofline/length/{MODEL}/siso/t2/{row.role}"
    seen = {f"{phase.value}/{role}" for phase, found in samples.items() for role in found}
    without = {
        f"{case.phase.value}/{case.role}"
        for case in operator_cases(point("siso").workload)
        if case.phase is not None and not sum(cost.cost.flops for cost in case.costs)
    }
    assert roles == seen - without
    assert "prefill/embd" in seen & without
    assert not any(role.endswith(f"/{REST_ROLE}") for role in roles)
    assert all(row.work.flops and row.work.least_traffic_bytes for row in measured_rows)


def test_times_that_no_clock_could_tell_leave_no_row(machine: Machine) -> None:
    """A time of 0 ns has no rate, so that its row is left out instead of standing at infinity."""
    found = Span(phase=Phase.PREFILL, repetition=0, token=0, n_tokens=1, start_ns=5, end_ns=5)
    machine.records = [record(found, *spans(0, (100,)))]
    assert {row.kind for row in machine.measured()} == {RowKind.DECODE, RowKind.WHOLE_RUN}


@pytest.mark.long
def test_a_real_process_gives_rows_with_a_place(tmp_path: Path) -> None:
    """Two layers of SmolLM2-135M through the engine: phases and operators have times, and points on a roofline."""
    # The machine may be busy: competition is allowed, for no time is judged here.
    patient = replace(find_profile("host"), max_waiting_ratio=1.0, max_others_ratio=1.0)
    on_one = replace(bench(tmp_path, n_processes=1, records_operators=True), profile=patient)
    rows, version = measure_rows((point(n_threads=1),), on_one, lambda text: None)
    assert version
    kinds = Counter(row.kind for row in rows)
    assert kinds[RowKind.PREFILL] == kinds[RowKind.DECODE] == kinds[RowKind.WHOLE_RUN] == 1
    assert kinds[RowKind.OPERATOR] > 20
    by_kind = {row.kind: row for row in rows if not row.role}
    prefill, decode, whole = (by_kind[kind] for kind in (RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN))
    assert whole.time_ns > max(prefill.time_ns, decode.time_ns)
    run = roofline_run(*rows, survey=survey(1), n_threads=1)
    assert all(run.point(row).attainable_ratio > 0 for row in rows)
    assert all(row.case.startswith(f"roofline/length/{MODEL}/p16-g4/t1/") for row in rows)
    assert RooflineRun.from_plain(run.to_plain()) == run
