"""How the tiled kernels are cut, and what devices cannot hold of that."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from perfsuite.expectation.shapes.floor import INNER_STEP
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.launches.plan import DeviceLimits
from perfsuite.measure.shapes.tiled_launches import STEP, kernels_digest, local_bytes, local_size, tiled_problem
from perfsuite.workload.shapes.operation_shape import OperationShape
from perfsuite.workload.shapes.shape_case import TILES, VECTORS, Tiling

from ...synthetic_opencl_backend import opencl_device
from ...synthetic_shapes import tiled

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


@pytest.mark.parametrize("text", SHAPES)
def test_work_groups_fit_small_devices(text: str) -> None:
    """A work-group has no more than 256 items and 32 KiB of local memory, and one item for VECTOR outputs along n."""
    for tiling in TILINGS:
        items = local_size(_shape(text), tiling)
        assert prod(items) <= 256, tiling
        assert items[0] * tiling.vector == tiling.tile
        assert local_bytes(_shape(text), tiling) <= 32 * 1024, tiling


def test_other_sources_have_another_digest(tmp_path: Path) -> None:
    """What was accepted of one copy of the kernels does not excuse another; an exact copy is the same."""
    copied, changed = (Path(shutil.copytree(KERNELS_DIR, tmp_path / name)) for name in ("copied", "changed"))
    with (changed / "pieces.cl").open("a") as source:
        source.write("// changed")
    assert kernels_digest(copied) == kernels_digest(KERNELS_DIR)
    assert kernels_digest(changed) != kernels_digest(KERNELS_DIR)
    assert kernels_digest(tmp_path / "none") != kernels_digest(KERNELS_DIR)


@pytest.mark.parametrize(
    ("shape", "limits", "words"),
    [
        ("gemv/n1-k1/f32", {"axis_items": (32, 32, 32)}, "along axis 0: 64; expected 32 at most"),
        ("gemm/m1-n1-k1/f32", {"local_memory_bytes": 1 << 13}, "bytes of local memory: 16384; expected 8192 at most"),
        ("gemv/n1024-k257/f32", {}, "bytes of a buffer: 1052672; expected 1048576 at most"),
        ("gemv/n1073741825-k1/f32", {}, "the largest size: 1073741825; expected 1073741824 at most"),
    ],
)
def test_problem(shape: str, limits: Mapping[str, Any], words: str) -> None:
    roomy: dict[str, Any] = {"local_memory_bytes": 1 << 15, "axis_items": (256, 256, 64), **limits}
    device = replace(opencl_device("gpu"), local_memory_bytes=roomy["local_memory_bytes"], global_memory_bytes=1 << 21)
    most = DeviceLimits(extensions="", allocation_bytes=1 << 20, group_items=256, axis_items=roomy["axis_items"])
    problem = tiled_problem(tiled(shape, vector=1), device, most)
    assert (problem or "").endswith(words)
