"""The shape that is computed in the place of the one that was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.shapes.padding import INNER_STEP, ROUND_SIZE, dimension_steps, padded_shape
from perfsuite.workload.shapes.operation import STORED_TYPES, Operation
from perfsuite.workload.shapes.operation_shape import block_values
from perfsuite.workload.shapes.shape_case import TILES

from ...synthetic_shapes import ggml, tiled


@pytest.mark.parametrize(
    ("shape_id", "steps"),
    [
        ("gemm/m3-n5-k7/f32", {"m": 16, "n": 16, "k": INNER_STEP}),
        ("bmm/b2-m3-n5-k7/f32", {"n": 16, "k": INNER_STEP}),
        ("gemv/n5-k7/f32", {"n": 16, "k": INNER_STEP}),
        ("attention/heads4-kvheads2-head7-context5/f32", {"context": 16, "head": INNER_STEP}),
    ],
)
def test_the_tiled_dimensions_grow_by_the_tile_and_the_inner_one_by_its_step(
    shape_id: str, steps: dict[str, int]
) -> None:
    """Batches, heads and a BMM's tokens are work-groups of their own, and have no step."""
    assert dimension_steps(tiled(shape_id, tile=16)) == steps


@pytest.mark.parametrize("operation", list(Operation))
def test_ggml_is_held_against_round_shapes(operation: Operation) -> None:
    """Without a tile every step is the round size."""
    sizes = "-".join(f"{name}2" for name in operation.dimensions)
    assert set(dimension_steps(ggml(f"{operation.value}/{sizes}/f32")).values()) == {ROUND_SIZE}


def test_each_padded_dimension_is_rounded_up_and_the_others_stay() -> None:
    """A BMM of 65 keys at a tile of 64 costs 128; its products and tokens are as they were."""
    assert padded_shape(tiled("bmm/b3-m5-n65-k33/f16")).id == "bmm/b3-m5-n128-k64/f16"


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 500), st.sampled_from(TILES))
def test_padding_a_padded_shape_changes_nothing(m: int, n: int, k: int, tile: int) -> None:
    """A padded shape is its own padded shape."""
    case = tiled(f"gemm/m{m}-n{n}-k{k}/f32", tile=tile, vector=1)
    padded = replace(case, shape=padded_shape(case))
    assert padded_shape(padded) == padded.shape


@pytest.mark.parametrize("type", STORED_TYPES)
def test_padding_keeps_rows_in_whole_blocks(type: str) -> None:
    """An inner dimension in whole blocks of its type is so after padding."""
    k = 3 * block_values(type)
    assert padded_shape(ggml(f"gemv/n1-k{k}/{type}")).of("k") % block_values(type) == 0
