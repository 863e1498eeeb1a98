"""Rounds over many cases in fresh processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from perfsuite.errors import MeasurementError, PolicyError
from perfsuite.experiments.shapes.policy import vetted
from perfsuite.experiments.shapes.policy_question import tilings
from perfsuite.experiments.shapes.policy_rounds import Floats, RoundDesign, measure_rounds
from perfsuite.measure.shapes.meter import ShapeMeter
from perfsuite.testing.shape_meters import SimulatedMeter, SimulatedMeters
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject
from tests.synthetic_shape_policy import CPU, OPENCL, backend_meters, backend_question, crossing_at, tiling_question


def is_wide(case: ShapeCase) -> bool:
    return case.tiling is not None and case.tiling.tile == 64 and case.shape.of("n") == 89


def is_refused(case: ShapeCase) -> bool:
    """A kernel that is too wide for the device is found out when it is launched."""
    if is_wide(case):
        raise MeasurementError(f"{case.case_id}: clEnqueueNDRangeKernel failed: INVALID_WORK_GROUP_SIZE")
    return False


@pytest.mark.parametrize(
    ("meters", "reason"),
    [
        (SimulatedMeters(wrong=is_wide), "gemv/n89-k512/f16: computes something else, error norm 1"),
        (
            SimulatedMeters(problem=lambda case: "no local memory" if is_wide(case) else None),
            "gemv/n89-k512/f16: no local memory",
        ),
        (SimulatedMeters(crashes=is_wide), "was killed by SIGSEGV"),
        (SimulatedMeters(wrong=is_refused), "INVALID_WORK_GROUP_SIZE"),
    ],
)
def test_a_choice_with_a_fault_at_one_shape_is_left_out(meters: SimulatedMeters, reason: str) -> None:
    found = vetted(tiling_question(), {Subject.TILED: meters})
    assert [str(each) for each in found.question.choices if each.tile == 64] == []
    assert [str(each.choice) for each in found.left_out] == ["tile64-vector4", "tile64-vector8", "tile64-vector16"]
    assert all(reason in each.reason for each in found.left_out)
    assert meters.n_open == 0


def test_choices_may_be_left_out_until_none_is_left() -> None:
    with pytest.raises(PolicyError, match="tiling: no choice is left; tile8-vector4: gemv/n1-k512/f16: computes some"):
        vetted(tiling_question(), {Subject.TILED: SimulatedMeters(wrong=lambda case: True)})
    found = vetted(backend_question(), backend_meters(crossing_at(10))).without(OPENCL, "n7: died")
    assert [(str(each.choice), each.reason) for each in found.left_out] == [("opencl", "n7: died")]
    assert [str(each) for each in found.question.choices] == ["cpu"]
    with pytest.raises(PolicyError, match="backend: no choice is left; opencl: n7: died"):
        found.without(CPU, "n9: died")


def test_vectors_wider_than_their_tile_are_no_choice_and_rows_of_blocks_grow_by_blocks() -> None:
    assert [str(each) for each in tilings((8, 16), (4, 16))] == ["tile8-vector4", "tile16-vector4", "tile16-vector16"]
    shape = OperationShape.of_sizes(Operation.GEMV, "q8_0", {"n": 8, "k": 64})
    assert tiling_question(shape=shape, dimension="k", sizes=(32, 64)).step == 32
    assert tiling_question(shape=shape, dimension="n", sizes=(3, 4)).step == 1


DESIGN = RoundDesign(n_processes=4, n_rounds=3)


def cases() -> list[ShapeCase]:
    question = backend_question()
    return [question.case(choice, size) for choice in (CPU, OPENCL) for size in (8, 89)]


class Scripted:
    """Meters whose rounds are slowed down by a factor that is reported, and which note who was asked."""

    def __init__(self, subject: Subject, asked: list[Subject], factors: Sequence[float] = (1.0,)) -> None:
        self.subject = subject
        self.asked = asked
        self.factors = list(factors)
        self.n_launches: list[int | None] = []

    def resident(self) -> ShapeMeter:
        raise AssertionError

    @contextmanager
    def fresh(self) -> Iterator[ShapeMeter]:
        script = self

        class Meter(SimulatedMeter):
            def round(
                self, cases: Sequence[ShapeCase], *, order_seed: int, n_launches: int | None = None
            ) -> tuple[int, ...]:
                script.asked.append(script.subject)
                script.n_launches.append(n_launches)
                factor = script.factors.pop(0) if len(script.factors) > 1 else script.factors[0]
                return tuple(round(factor * 10_000 * (place + 1)) for place in range(len(cases)))

        yield Meter(SimulatedMeters())


def test_times_are_those_of_the_cases_by_process() -> None:
    time_ns = crossing_at(100)
    meters = backend_meters(time_ns, sigma=0.0, placement_sigma=0.0, process_sigma=0.0)
    found = np.stack([*measure_rounds(meters, cases(), design=DESIGN).values()], axis=1)
    np.testing.assert_allclose(np.exp(found), np.tile([time_ns(case) for case in cases()], (4, 1)), rtol=1e-3)
    assert [(each.n_fresh, each.n_open, each.n_calls["round"]) for each in meters.values()] == [(4, 0, 16), (4, 0, 16)]


def test_two_subjects_take_turns() -> None:
    asked: list[Subject] = []
    meters = {each: Scripted(each, asked) for each in (Subject.GGML_CPU, Subject.GGML_OPENCL)}
    measure_rounds(meters, cases(), design=DESIGN)
    firsts = "".join("A" if each is Subject.GGML_CPU else "B" for each in asked)
    assert firsts == "ABBAABBA" + "BAABBAAB" + "ABBAABBA" + "BAABBAAB"


def tiled_times(factors: Sequence[float]) -> tuple[Floats, Scripted]:
    meters, question = Scripted(Subject.TILED, [], factors), tiling_question()
    two = [question.case(each, 8) for each in question.choices[:2]]
    return np.stack([*measure_rounds({Subject.TILED: meters}, two, design=DESIGN).values()], axis=1), meters


def test_two_subjects_have_equally_many_launches_a_sample() -> None:
    """One in the very first round, whose times say how many afterwards: 8 of 10 and 20 us, 7 beside 1 and 2 ms."""
    for factor, expected in ((1.0, 8), (100.0, 7)):
        meters = {
            Subject.GGML_CPU: Scripted(Subject.GGML_CPU, []),
            Subject.GGML_OPENCL: Scripted(Subject.GGML_OPENCL, [], [factor]),
        }
        measure_rounds(meters, cases(), design=DESIGN)
        assert [each.n_launches for each in meters.values()] == [[1] + 15 * [expected]] * 2


def test_the_first_round_of_a_process_does_not_count() -> None:
    """What a process takes to get going is in nobody's time, and what slows a whole round cancels from ratios."""
    found, meters = tiled_times([50.0, 1.0, 1.0, 1.0] * 4)
    np.testing.assert_allclose(np.exp(found), np.tile([10_000.0, 20_000.0], (4, 1)), rtol=1e-6)
    assert set(meters.n_launches) == {None}
    found, _ = tiled_times([1.0, 1.0, 2.0, 7.0] * 4)
    np.testing.assert_allclose(np.exp(found[:, 1] - found[:, 0]), 2.0)
