"""What is left out of a question before anything is timed."""

from __future__ import annotations

import pytest

from perfsuite.errors import MeasurementError, PolicyError
from perfsuite.experiments.shapes.policy_vetting import faults, vetted, without
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject
from tests.synthetic_shape_policy import backend_meters, backend_question, crossing_at, tiling_question


def is_wide(case: ShapeCase) -> bool:
    """The largest tile, at one size only."""
    return case.tiling is not None and case.tiling.tile == 64 and case.shape.of("n") == 89


def test_sound_choices_all_stay() -> None:
    """Nothing is left out without a reason, and each subject's device is told."""
    found = vetted(backend_question(), backend_meters(crossing_at(100)))
    assert (found.question, found.left_out) == (backend_question(), ())
    devices = {each.subject: each.device for each in found.subjects}
    assert devices == {"ggml-cpu": "simulated device", "ggml-opencl": "simulated device"}


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
    """One shape at which it is wrong, refused or fatal is enough; the shape is named, and the others stay."""
    found = vetted(tiling_question(), {Subject.TILED: meters})
    assert [str(each) for each in found.question.choices if each.tile == 64] == []
    assert [str(each.choice) for each in found.left_out] == ["tile64-vector4", "tile64-vector8", "tile64-vector16"]
    assert all(reason in each.reason for each in found.left_out)
    assert meters.n_open == 0


def test_choices_may_be_left_out_until_none_is_left() -> None:
    """At once or later, with their reasons; where nothing computes the operation, the first reason is told."""
    with pytest.raises(PolicyError, match="tiling: no choice is left; tile8-vector4: gemv/n1-k512/f16: computes some"):
        vetted(tiling_question(), {Subject.TILED: SimulatedMeters(wrong=lambda case: True)})
    found = without(vetted(backend_question(), backend_meters(crossing_at(10))), 1, "n7: died")
    assert [(str(each.choice), each.reason) for each in found.left_out] == [("opencl", "n7: died")]
    assert [str(each) for each in found.question.choices] == ["cpu"]
    with pytest.raises(PolicyError, match="backend: no choice is left; opencl: n7: died"):
        without(found, 0, "n9: died")


def test_each_case_has_its_fault_or_none() -> None:
    """In the order of the cases, and nothing is started for none."""
    question, meters = backend_question(), backend_meters(crossing_at(10))
    meters[Subject.GGML_OPENCL].wrong = lambda case: case.shape.of("n") == 8
    cases = [question.case(choice, size) for choice in question.choices for size in (5, 8)]
    assert [reason is not None for reason in faults(meters, cases).values()] == [False, False, False, True]
    assert faults({}, ()) == {}
