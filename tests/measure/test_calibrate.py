"""A whole calibration, with its workers replaced: nothing is measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.timing.calibration_plan import quick_plan, reference_architectures, standard_plan
from perfsuite.expectation.timing.engine_times import phase_operators
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.calibrate import CalibrationRun, _shapes_and_rest_ns, calibrate
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import LlamaPlan, OperatorsPlan, Plan
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.testing.engine_traces import evaluation
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

from ..synthetic_calibration import lawful_ns
from ..synthetic_calibration_run import AFTER_NS, BEFORE_NS, engine_run, operator_times, operators_of, within_ns

TYPES = ("q8_0", "q4_0")

PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536)
NORM = OperatorShape(op="RMS_NORM+MUL", type="f32", n_inner=576)


class Machine:
    """Answers every plan: operators by the law, each round a little longer; architectures with operators by the law."""

    def __init__(self, payload: dict[str, Any]) -> None:
        self._payload = payload
        self.plans: list[Plan] = []
        self.boards: list[object] = []
        self.n_tries: set[int] = set()
        #: The record of another model, which answers for every architecture.
        self.answers_with: dict[str, Any] | None = None

    def run(self, board: object, plan: Plan, _: object, *, n_tries: int) -> dict[str, Any]:
        """Return what a worker would send; whoever should have run it, and how often at most, is noted."""
        self.plans.append(plan)
        self.n_tries.add(n_tries)
        self.boards.append(board)
        if isinstance(plan, OperatorsPlan):
            return operator_times(plan, self.n_rounds)
        assert isinstance(plan, LlamaPlan)
        engine = self.answers_with or engine_run(plan, self.n_rounds)["engine"]
        return {"engine": {**engine, "engine_version": self._payload["engine"]["engine_version"]}}

    @property
    def operator_plans(self) -> list[OperatorsPlan]:
        """The rounds over single operators: those of few rows, and then the others."""
        return [plan for plan in self.plans if isinstance(plan, OperatorsPlan)]

    @property
    def n_rounds(self) -> int:
        return (len(self.operator_plans) + 1) // 2

    @property
    def orders(self) -> list[tuple[OperatorShape, ...]]:
        plans = iter(self.operator_plans)
        return [few.shapes + many.shapes for few, many in zip(plans, plans, strict=True)]

    @property
    def llama_plans(self) -> list[LlamaPlan]:
        return [plan for plan in self.plans if isinstance(plan, LlamaPlan)]


@pytest.fixture
def machine(stored_payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(stored_payload)
    monkeypatch.setattr("perfsuite.measure.calibrate.run_undisturbed", found.run)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize", lambda weights, cache_dir: cache_dir / f"{weights.name}.gguf"
    )
    return found


@pytest.fixture
def run(engine: Engine, tmp_path: Path) -> CalibrationRun:
    """Return three rounds on the host, with the architectures whose graph is known."""
    plan = standard_plan(TYPES, tmp_path / "models")
    known = tuple(each for each in plan.compositions if each.is_analytical)
    return CalibrationRun(
        board=LocalBoard(cache_dir=tmp_path / "board"),
        engine=engine,
        profile=find_profile("host"),
        n_threads=2,
        plan=replace(plan, compositions=known),
    )


def with_rounds(run: CalibrationRun, n_rounds: int, *, seed: int = 0) -> CalibrationRun:
    return replace(run, plan=replace(run.plan, n_rounds=n_rounds), seed=seed)


def test_every_round_measures_every_operator_in_another_order(machine: Machine, run: CalibrationRun) -> None:
    """Each round is two fresh processes, with all shapes of the grid, shuffled anew; a seed gives the same.

    What has few rows reads its parameters from further apart.
    """
    calibrate(run, print)
    orders = machine.orders
    assert len(orders) == 3
    spreads = {(shape.n_tokens < 32, plan.spread_bytes) for plan in machine.operator_plans for shape in plan.shapes}
    assert spreads == {(True, 256 << 20), (False, 96 << 20)}
    assert all(Counter(order) == Counter(standard_shapes(TYPES)) for order in orders)
    assert len({*orders, standard_shapes(TYPES)}) == 4
    assert {(plan.n_threads, plan.engine_build_id) for plan in machine.operator_plans} == {(2, run.engine.build_id)}
    for seed in (0, 1):
        calibrate(with_rounds(run, 1, seed=seed), print)
    same, other = machine.orders[3:]
    assert orders[0] == same != other


def test_the_times_are_those_of_their_shape(machine: Machine, run: CalibrationRun) -> None:
    found = calibrate(run, print)
    assert [point.shape for point in found.points] == list(standard_shapes(TYPES))
    for point in found.points:
        assert point.rounds_ns == pytest.approx([lawful_ns(point.shape) * by for by in (1.01, 1.02, 1.03)])


def test_every_round_runs_every_architecture_twice(machine: Machine, run: CalibrationRun) -> None:
    """Operators first, then each architecture in two fresh processes whose memory lies elsewhere; so in each round.

    Half learn of short prompts, half of long ones, and none of a length that is held out alone. Each step has a line.
    """
    lines: list[str] = []
    calibrate(run, lines.append)
    architectures = [f"{architecture.name}-{quantization}" for architecture, quantization in reference_architectures()]
    kinds = [type(plan).__name__ for plan in machine.plans]
    assert kinds == [*["OperatorsPlan"] * 2, *["LlamaPlan"] * 2 * len(architectures)] * 3
    assert len({plan.layout_seed for plan in machine.llama_plans} - {0}) == len(machine.llama_plans)
    assert [Path(plan.gguf_path).stem for plan in machine.llama_plans] == architectures * 6
    assert {(plan.n_threads, plan.recorder, plan.n_repetitions) for plan in machine.llama_plans} == {(2, "callback", 3)}
    assert len({plan.n_prompt for plan in machine.llama_plans}) == 2
    assert len(lines) == 3 * (1 + 2 * len(architectures))
    assert lines[0] == f"round 1 of 3: {len(standard_shapes(TYPES))} operators"
    assert lines[-1].startswith("round 3 of 3: calibration-")


def test_a_composition_has_the_time_of_each_shape_in_each_round(machine: Machine, run: CalibrationRun) -> None:
    """All occurrences of a shape are summed, and what is beside the operators is the rest."""
    found = calibrate(run, print)
    prompts = {Path(plan.gguf_path).stem: plan.n_prompt for plan in machine.llama_plans}
    for each in found.compositions:
        operators = operators_of(each.name, prompts[each.name], Phase(each.phase))
        assert dict(zip(each.shapes, each.counts, strict=True)) == Counter(operators)
        rounds = (1, 1, 2, 2, 3, 3)
        for shape, count, times_ns in zip(each.shapes, each.counts, each.shapes_ns, strict=True):
            assert times_ns == tuple(float(within_ns(shape, at) * count) for at in rounds)
        assert each.operators_ns == tuple(sum(within_ns(shape, at) for shape in operators) for at in rounds)
        assert each.rest_ns == (BEFORE_NS + AFTER_NS,) * 6


def test_a_graph_that_the_expectation_does_not_have_ends_it(
    machine: Machine, run: CalibrationRun, stored_payload: dict[str, Any]
) -> None:
    machine.answers_with = stored_payload["engine"]
    name = "-".join((reference_architectures()[0][0].name, reference_architectures()[0][1]))
    expected = len(operators_of(name, 96, Phase.PREFILL))
    with pytest.raises(MeasurementError) as caught:
        calibrate(with_rounds(run, 1), print)
    computed = evaluations_of(EngineRecord.from_plain(stored_payload["engine"])).n_ends[0]
    told = "this llama.cpp has another graph than the expectation"
    assert str(caught.value) == f"calibration: prefill computed {computed} operators, expected {expected}; {told}"


def test_a_quick_one_measures_its_plan_alone(machine: Machine, run: CalibrationRun, tmp_path: Path) -> None:
    workload = llama_workload(resolve("smollm2-135m-q8_0", cache_dir=tmp_path), find_scenario("siso"))
    plan = quick_plan(workload, tmp_path / "models")
    found = calibrate(replace(run, plan=plan), print)
    assert len(machine.plans) == plan.n_steps
    assert all(set(order) == set(plan.shapes) for order in machine.orders)
    assert {each.n_prompt for each in machine.llama_plans} == {64}
    assert machine.n_tries == {plan.n_tries}
    assert found.is_quick


def record(*evaluations: bytes, spans: tuple[tuple[Phase, int, int], ...]) -> EngineRecord:
    made = tuple(
        Span(phase=phase, repetition=0, token=0, n_tokens=1, start_ns=start, end_ns=end) for phase, start, end in spans
    )
    return EngineRecord(engine_version="1", spans=made, graphs=(), events=b"".join(evaluations), n_dropped=0)


@pytest.mark.parametrize(
    ("operators", "shapes", "expected"),
    [
        (evaluation(20, 50, 90, first_start_ns=30), (NORM, PRODUCT), ({NORM: 20.0, PRODUCT: 40.0}, 40.0)),
        (evaluation(20, 50, 90), (NORM, PRODUCT), ({NORM: 30.0, PRODUCT: 40.0}, 30.0)),
        (evaluation(20, 50, 90, 97, first_start_ns=30), (NORM, PRODUCT, NORM), ({NORM: 27.0, PRODUCT: 40.0}, 33.0)),
    ],
    ids=["from its entry", "from its launch", "twice"],
)
def test_an_operator_lasts_from_the_end_of_the_one_before(
    operators: bytes, shapes: tuple[OperatorShape, ...], expected: tuple[dict[OperatorShape, float], float]
) -> None:
    """Where the first one's start was not recorded its launch stands for it; the occurrences of a shape add up.

    What is left of the phase's 100 ns is the engine's own.
    """
    whole = record(operators, spans=((Phase.DECODE, 10, 110),))
    assert _shapes_and_rest_ns(whole, Phase.DECODE, shapes) == expected


def test_the_batches_of_a_phase_add_up() -> None:
    """A prompt of two evaluations has the operators of both in turn, and the gap between them is the engine's."""
    whole = record(
        evaluation(10, 40, first_start_ns=20), evaluation(60, 90, first_start_ns=65), spans=((Phase.PREFILL, 0, 100),)
    )
    assert _shapes_and_rest_ns(whole, Phase.PREFILL, (NORM, PRODUCT)) == ({NORM: 20.0, PRODUCT: 25.0}, 55.0)
    assert _shapes_and_rest_ns(whole, Phase.PREFILL, (NORM, NORM)) == ({NORM: 45.0}, 55.0)


def test_the_median_of_the_occurrences_counts() -> None:
    """Of three steps the one in the middle is taken, each shape and the rest by themselves; other phases are not."""
    spans = ((Phase.DECODE, 0, 100), (Phase.DECODE, 100, 250), (Phase.COPY, 250, 900), (Phase.DECODE, 1000, 1080))
    whole = record(
        *(evaluation(10, 30, 60), evaluation(110, 115, 240), evaluation(300, 800), evaluation(1010, 1035, 1040)),
        spans=spans,
    )
    assert _shapes_and_rest_ns(whole, Phase.DECODE, (NORM, PRODUCT)) == ({NORM: 20.0, PRODUCT: 30.0}, 50.0)


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
def test_operators_and_rest_make_up_a_recorded_phase(stored_record: EngineRecord, phase: Phase) -> None:
    """In a real record every operator of the graph has a time, and the head of 49152 rows takes the most in decode."""
    workload = llama_workload(resolve("smollm2-135m-l2-q8_0", cache_dir=Path("/nowhere")), find_scenario("siso"))
    spans = [span.duration_ns for span in stored_record.spans if span.phase is phase]
    shapes_ns, rest_ns = _shapes_and_rest_ns(stored_record, phase, phase_operators(workload, phase))
    assert min(shapes_ns.values()) > 0.0
    assert sum(shapes_ns.values()) > rest_ns > 0.0
    assert sum(shapes_ns.values()) + rest_ns == pytest.approx(median(spans), rel=0.05)
    if phase is Phase.DECODE:
        assert max(shapes_ns, key=shapes_ns.__getitem__).n_outer == 49152
