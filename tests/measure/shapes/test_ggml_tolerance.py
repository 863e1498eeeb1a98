"""What rounding may make of ggml's results."""

from __future__ import annotations

import pytest

from perfsuite.measure.shapes.ggml_inputs import ggml_inputs
from perfsuite.measure.shapes.ggml_tolerance import F16_ROUNDOFF, ggml_tolerance
from perfsuite.measure.shapes.shape_references import shape_reference
from perfsuite.workload.shapes.operation_shape import OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject


def tolerances(shape_id: str, *, subject: Subject = Subject.GGML_CPU, machine: str = "x86_64") -> tuple[float, float]:
    """Return ggml's tolerance at a shape, and that of sums in F32."""
    case = ShapeCase(subject=subject, shape=OperationShape.from_id(shape_id))
    inputs = ggml_inputs(case.shape, seed=1)
    reference = shape_reference(inputs)
    return ggml_tolerance(case, inputs, reference, machine=machine), reference.f32_tolerance


@pytest.mark.parametrize(
    "shape_id", ["gemm/m3-n5-k256/f16", "gemv/n5-k256/q4_k", "attention/heads2-kvheads1-head32-context9/q8_0"]
)
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_sums_in_f32_have_their_tolerance(shape_id: str, machine: str) -> None:
    """Nothing is added where ggml adds up in F32, whatever the weights; F16 products are the exception on Arm."""
    found, in_f32 = tolerances(shape_id, machine=machine)
    assert (found == in_f32) == (machine == "x86_64" or "f16" not in shape_id)


def test_opencl_adds_up_in_f32() -> None:
    """The CPU backend's F16 sums are no excuse for the OpenCL backend's."""
    shape_id = "attention/heads2-kvheads1-head32-context64/f16"
    found, in_f32 = tolerances(shape_id, subject=Subject.GGML_OPENCL, machine="aarch64")
    assert found == in_f32
    assert tolerances(shape_id)[0] > 10 * in_f32


def test_f16_sums_round_once_a_position() -> None:
    """A single position is rounded once, with nothing to cancel: 2 units; 64 times as many have 8 times as much."""
    found, in_f32 = tolerances("attention/heads2-kvheads1-head32-context1/f16")
    assert found - in_f32 == pytest.approx(2 * F16_ROUNDOFF)
    many, of_f32 = tolerances("attention/heads64-kvheads64-head32-context64/f16")
    assert many - of_f32 == pytest.approx(16 * F16_ROUNDOFF, rel=0.2)


def test_arm_adds_up_products_side_by_side() -> None:
    """A product of 4096 values is 32 sums of 128."""
    found, in_f32 = tolerances("gemv/n512-k4096/f16", machine="aarch64")
    assert found - in_f32 == pytest.approx(2 * 128**0.5 * F16_ROUNDOFF, rel=0.2)


def test_the_own_machine_is_asked_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bench on Arm has Arm's tolerance."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    case = ShapeCase(subject=Subject.GGML_CPU, shape=OperationShape.from_id("gemv/n5-k64/f16"))
    inputs = ggml_inputs(case.shape, seed=1)
    reference = shape_reference(inputs)
    on_arm = ggml_tolerance(case, inputs, reference)
    assert on_arm == ggml_tolerance(case, inputs, reference, machine="aarch64")
    assert on_arm > ggml_tolerance(case, inputs, reference, machine="x86_64")
