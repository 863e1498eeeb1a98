"""A shape against the same shape grown by a tile."""

from __future__ import annotations

import pytest

from perfsuite.experiments.shapes.growth import grown_cases, judge_growth, judge_padding
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase
from tests.synthetic_shapes import basis, ggml, tiled


def is_slow(case: ShapeCase) -> bool:
    """Whether a planted fault meets a case."""
    return case.shape.of("k") % 32 == 1


def test_a_kernel_that_computes_whole_tiles_passes() -> None:
    """A shape that costs what its padded shape costs is no slower, and tells of both."""
    verdict = judge_padding(basis(SimulatedMeters()), tiled("gemm/m1-n33-k40/f32"))
    assert verdict.outcome is Outcome.PASS
    assert verdict.ratio == pytest.approx(1.0, abs=0.02)
    assert verdict.against_id == "shape/tiled/gemm/m64-n64-k64/f32/tile64-vector8"
    assert "against padded m64-n64-k64, margin 25 %" in verdict.reason


@pytest.mark.parametrize("case", [tiled("gemm/m1-n33-k33/f32"), ggml("gemm/m1-n33-k33/f32")], ids=["tiled", "ggml"])
def test_a_slow_path_at_an_edge_regresses(case: ShapeCase) -> None:
    """Twice the time is found, with what it was held against and on how many processes."""
    meters = SimulatedMeters(slowdowns=((is_slow, 2.0),))
    verdict = judge_padding(basis(meters), case)
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.ratio == pytest.approx(2.0, abs=0.05)
    assert verdict.reason.endswith("margin 25 %; in 2 fresh processes")
    assert meters.n_fresh == 2


def test_a_shape_that_is_faster_than_its_padded_shape_passes() -> None:
    """A kernel that skips its padding does better than the property asks."""
    meters = SimulatedMeters(time_ns=lambda case: float(case.shape.flops))
    assert judge_padding(basis(meters), tiled("gemm/m1-n33-k40/f32")).outcome is Outcome.PASS


def test_a_padded_shape_holds_without_a_measurement() -> None:
    """It is its own padded shape."""
    meters = SimulatedMeters()
    verdict = judge_padding(basis(meters), tiled("gemm/m64-n64-k64/f32"))
    assert (verdict.outcome, verdict.ratio) == (Outcome.PASS, None)
    assert not meters.n_samples


def test_a_padded_shape_that_cannot_be_computed_bounds_nothing() -> None:
    """The verdict is INVALID and says of which shape."""
    meters = SimulatedMeters(problem=lambda case: "too large" if case.shape.of("n") == 64 else None)
    verdict = judge_padding(basis(meters), tiled("bmm/b1-m1-n33-k32/f32"))
    assert verdict.outcome is Outcome.INVALID
    assert verdict.reason == "its padded shape, n64: too large"


WHOLE = tiled("gemm/m64-n64-k64/f32")


def test_each_dimension_grows_by_its_step() -> None:
    """Tiles of tokens and rows, the inner step along the inner dimension, or whole blocks where they are longer."""
    assert [grown.shape.id for grown in grown_cases(tiled("gemm/m3-n5-k7/f32", tile=16))] == [
        "gemm/m19-n5-k7/f32",
        "gemm/m3-n21-k7/f32",
        "gemm/m3-n5-k39/f32",
    ]
    assert [grown.shape.id for grown in grown_cases(ggml("gemv/n5-k256/q4_k"))] == [
        "gemv/n37-k256/q4_k",
        "gemv/n5-k512/q4_k",
    ]


def test_a_cost_that_grows_with_every_dimension_passes() -> None:
    """The verdict tells of the dimension that came nearest to failing."""
    meters = SimulatedMeters()
    verdict = judge_growth(basis(meters), WHOLE)
    assert verdict.outcome is Outcome.PASS
    assert verdict.against_id == "shape/tiled/gemm/m64-n64-k96/f32/tile64-vector8"
    assert verdict.ratio is not None
    assert verdict.ratio < 1.0
    assert meters.n_calls["pairs"] == 3


@pytest.mark.parametrize(("dimension", "n_compared"), [("m", 1), ("n", 2), ("k", 3)])
def test_a_cost_that_falls_along_any_dimension_regresses(dimension: str, n_compared: int) -> None:
    """Dimensions are judged in turn, and none after the first that fails."""
    meters = SimulatedMeters(time_ns=lambda case: 1e6 if case.shape.of(dimension) > 64 else 2e6)
    verdict = judge_growth(basis(meters), WHOLE)
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.ratio == pytest.approx(2.0, abs=0.05)
    assert f"against grown {dimension}" in verdict.reason
    assert meters.n_calls["pairs"] == n_compared + 2


def test_a_dimension_that_cannot_grow_bounds_nothing() -> None:
    """The others are judged; where none can grow the verdict is INVALID with every reason."""

    def too_large(case: ShapeCase) -> str | None:
        return "too large" if case.shape.of("m") > 64 else None

    assert judge_growth(basis(SimulatedMeters(problem=too_large)), WHOLE).outcome is Outcome.PASS
    verdict = judge_growth(basis(SimulatedMeters(problem=lambda _: "too large")), tiled("gemv/n64-k64/f32"))
    assert verdict.outcome is Outcome.INVALID
    assert verdict.reason == "grown to n128: too large; grown to k96: too large"
