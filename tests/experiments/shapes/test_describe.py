"""How a shape is measured again."""

from __future__ import annotations

import argparse
import shlex

import pytest

from perfsuite.experiments.shapes.command_sweep import add_parser, sweep_request
from perfsuite.experiments.shapes.describe import sweep_command
from perfsuite.experiments.shapes.judge import ShapeJudge
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase
from tests.synthetic_shapes import ggml, tiled


def slow(case: ShapeCase, property: ShapeProperty = ShapeProperty.PADDING) -> ShapeVerdict:
    """Return the verdict on a case that takes many times as long as any other."""
    return ShapeJudge(SimulatedMeters(slowdowns=((lambda each: each == case, 8.0),))).judge(property, case)


def padded_dimensions(verdict: ShapeVerdict) -> list[str]:
    """Name the dimensions in which a case differs from what it was held against."""
    case, against = ShapeCase.from_id(verdict.case_id), ShapeCase.from_id(verdict.against_id or verdict.case_id)
    return [each for each in case.operation.dimensions if case.shape.of(each) != against.shape.of(each)]


def test_the_command_measures_the_shape_up_to_what_it_was_held_against() -> None:
    """Subject, type, tiling and all sizes are given, one of them as a range."""
    verdict = slow(tiled("bmm/b32-m1-n33-k128/f16"))
    assert "against padded n64, margin 25 %; in 2 fresh processes" in verdict.reason
    assert sweep_command(verdict, "host") == (
        "perfsuite sweep bmm --device host --subject tiled --type f16 --tile 64 --vector 8 "
        "--b 32 --m 1 --n 33:64 --k 128"
    )


@pytest.mark.parametrize(
    ("case", "property", "sizes"),
    [
        (tiled("gemm/m1-n1-k33/f32"), ShapeProperty.PADDING, "--m 1 --n 1 --k 33:64"),
        (tiled("gemm/m1-n1-k32/f32"), ShapeProperty.PADDING, "--m 1 --n 1:64 --k 32"),
        (tiled("gemm/m64-n64-k32/f32"), ShapeProperty.GROWTH, "--m 64:128 --n 64 --k 32"),
        (tiled("gemv/n3-k32/f32"), ShapeProperty.CORRECT, "--n 3:67 --k 32"),
        (ggml("gemv/n64-k256/q4_k"), ShapeProperty.CORRECT, "--n 64:96 --k 256"),
        (
            tiled("attention/heads4-kvheads2-head65-context3/f32"),
            ShapeProperty.PADDING,
            "--heads 4 --kv-heads 2 --head-size 65:96 --context 3",
        ),
    ],
)
def test_the_sweep_runs_to_the_shape_that_was_compared(case: ShapeCase, property: ShapeProperty, sizes: str) -> None:
    """Of several dimensions it is the inner one, then the growing one; without a comparison a step of the latter."""
    assert sweep_command(slow(case, property), "host").endswith(sizes)


def test_rows_of_blocks_are_swept_by_the_block() -> None:
    """Sizes between whole blocks do not exist."""
    verdict = ShapeVerdict(
        property=ShapeProperty.GROWTH,
        case_id=ggml("gemv/n64-k256/q4_k").case_id,
        outcome=slow(tiled("gemv/n3-k32/f32")).outcome,
        reason="",
        against_id=ggml("gemv/n64-k512/q4_k").case_id,
    )
    assert sweep_command(verdict, "host").endswith("--subject ggml-cpu --type q4_k --n 64 --k 256:512:256")


def test_a_platform_is_quoted() -> None:
    """Its name may hold spaces."""
    command = sweep_command(slow(tiled("gemv/n3-k32/f32")), "host", platform="Intel(R) OpenCL")
    assert shlex.split(command)[4:7] == ["host", "--opencl-platform", "Intel(R) OpenCL"]


@pytest.mark.parametrize(
    "case",
    [
        tiled("gemm/m1-n1-k33/f16", tile=16, vector=4),
        tiled("bmm/b32-m1-n33-k128/q8_0"),
        tiled("gemv/n3-k32/q4_0"),
        tiled("attention/heads4-kvheads2-head65-context3/f32"),
        ggml("gemv/n65-k256/q4_k"),
    ],
)
def test_the_command_is_one_that_the_sweep_takes(case: ShapeCase) -> None:
    """Parsed again, it sweeps over the case and over what it was held against."""
    verdict = slow(case)
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    request = sweep_request(parser.parse_args(shlex.split(sweep_command(verdict, "host"))[1:]))
    swept = {each.case_id for each in request.setting(n_compute_units=2).cases}
    assert case.case_id in swept
    if len(padded_dimensions(verdict)) == 1:
        assert verdict.against_id in swept
