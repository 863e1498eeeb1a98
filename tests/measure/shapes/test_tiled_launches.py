"""How the tiled kernels are launched."""

from __future__ import annotations

import shutil
from math import prod
from pathlib import Path

import numpy as np
import pytest

from perfsuite.expectation.shapes.padding import INNER_STEP
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.shapes.shape_inputs import draw_inputs
from perfsuite.measure.shapes.tiled_launches import (
    STEP,
    buffer_bytes,
    global_size,
    kernels_digest,
    local_bytes,
    local_size,
    tiled_launch,
)
from perfsuite.workload.shapes.operation_shape import OperationShape
from perfsuite.workload.shapes.shape_case import TILES, VECTORS, Tiling

SHAPES = (
    "gemm/m65-n130-k33/f32",
    "bmm/b3-m2-n65-k64/q8_0",
    "gemv/n65-k256/q4_k",
    "attention/heads6-kvheads2-head64-context65/f16",
)
TILINGS = [Tiling(tile=tile, vector=vector) for tile in TILES for vector in VECTORS if vector <= tile]


def _shape(text: str) -> OperationShape:
    return OperationShape.from_id(text)


def test_the_step_is_that_of_the_expectation() -> None:
    """The kernels step along the inner dimension by what the expectation pads it to."""
    assert STEP == INNER_STEP


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("gemm/m65-n130-k33/f32", (3, 2, 1)),
        ("bmm/b3-m2-n65-k64/q8_0", (2, 2, 3)),
        ("gemv/n65-k256/q4_k", (2, 1, 1)),
        ("attention/heads6-kvheads2-head64-context65/f16", (6, 1, 1)),
    ],
)
@pytest.mark.parametrize("vector", [1, 8, 16])
def test_whole_tiles(text: str, groups: tuple[int, ...], vector: int) -> None:
    """A launch has a work-group for each tile of n, and of m for GEMM, else for each row; attention one a head."""
    shape, tiling = _shape(text), Tiling(tile=64, vector=vector)
    sizes = zip(global_size(shape, tiling), local_size(shape, tiling), strict=True)
    assert tuple(items / group for items, group in sizes) == groups


@pytest.mark.parametrize("text", SHAPES)
def test_work_groups_fit_small_devices(text: str) -> None:
    """A work-group has no more than 256 items and 32 KiB of local memory, and one item for VECTOR outputs along n."""
    for tiling in TILINGS:
        items = local_size(_shape(text), tiling)
        assert prod(items) <= 256, tiling
        assert items[0] * tiling.vector == tiling.tile
        assert local_bytes(_shape(text), tiling) <= 32 * 1024, tiling


@pytest.mark.parametrize("text", SHAPES)
def test_buffers_hold_the_inputs(text: str) -> None:
    """The bytes that are told beforehand are those of the arrays that are drawn, and of the output."""
    launch = tiled_launch(draw_inputs(_shape(text), seed=1), TILINGS[0])
    assert tuple(array.nbytes for array in launch.inputs) == buffer_bytes(_shape(text))[:-1]
    assert buffer_bytes(_shape(text))[-1] == 4 * _shape(text).n_outputs


def test_sizes_are_arguments() -> None:
    """Two shapes of an operation and type, and GEMV as a BMM of one, have the same program and other arguments."""
    texts = ("bmm/b3-m2-n65-k64/f16", "bmm/b1-m1-n1-k1/f16", "gemv/n65-k64/f16")
    launches = [tiled_launch(draw_inputs(_shape(text), seed=1), TILINGS[0]) for text in texts]
    assert len({(each.source, each.preludes, each.entry, each.defines) for each in launches}) == 1
    assert [tuple(map(int, each.scalars)) for each in launches] == [(2, 65, 64), (1, 1, 1), (1, 65, 64)]
    assert all(isinstance(scalar, np.int32) for each in launches for scalar in each.scalars)


def test_arguments_of_attention() -> None:
    """Attention is told its four sizes, and to scale by 1 / sqrt(head)."""
    launch = tiled_launch(draw_inputs(_shape(SHAPES[-1]), seed=1), TILINGS[0])
    assert launch.scalars == (6, 2, 64, 65, np.float32(0.125))
    assert isinstance(launch.scalars[-1], np.float32)


def test_other_sources_have_another_digest(tmp_path: Path) -> None:
    """What was accepted of one copy of the kernels does not excuse another; an exact copy is the same."""
    copied, changed = (Path(shutil.copytree(KERNELS_DIR, tmp_path / name)) for name in ("copied", "changed"))
    with (changed / "pieces.cl").open("a") as source:
        source.write("// changed")
    assert kernels_digest(copied) == kernels_digest(KERNELS_DIR)
    assert kernels_digest(changed) != kernels_digest(KERNELS_DIR)
    assert kernels_digest(tmp_path / "none") != kernels_digest(KERNELS_DIR)
