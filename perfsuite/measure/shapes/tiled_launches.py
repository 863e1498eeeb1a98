"""How the suite's tiled kernels are launched: definitions, arguments, global and local sizes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from perfsuite.measure.kernel_launches import Launch, Scalar
from perfsuite.measure.launches.plan import DeviceLimits
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.shapes.meter import BenchDescription
from perfsuite.measure.shapes.shape_references import ShapeInputs, product_sizes
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject, Tiling

#: Values of the inner dimension that a work-group stages at once, as the kernels have it.
STEP = 32
#: The longest head that the kernel of attention keeps in local memory.
MOST_HEAD = 1024
#: Values of the output that an item of GEMM holds, if its vector is no wider.
_ITEM_VALUES = 16

#: Kernels count in 32 bits with a sign, up to the end of the last tile.
_MOST_SIZE = 2**30

_F32_BYTES = 4
_PRELUDES = ("prelude.cl", "pieces.cl")
_SOURCES = ("tiled.cl", "tiled_attention.cl")


def tiled_launch(inputs: ShapeInputs, tiling: Tiling) -> Launch:
    """Return the launch of an operation on its inputs; of a program for each operation, type and tiling."""
    shape = inputs.shape
    kernel = "tiled_attention" if shape.operation is Operation.ATTENTION else "tiled"
    return Launch(
        source=f"{kernel}.cl",
        preludes=_PRELUDES,
        entry=kernel,
        defines=_defines(shape, tiling),
        inputs=(*inputs.stored, inputs.activations),
        scalars=_scalars(shape),
        global_size=global_size(shape, tiling),
        local_size=local_size(shape, tiling),
    )


def kernels_digest(kernels_dir: Path) -> str:
    """Return the first 12 digits of the SHA-256 of the kernels' sources; those of another directory are others."""
    digest = hashlib.sha256()
    for name in (*_PRELUDES, *_SOURCES):
        path = kernels_dir / name
        digest.update(path.read_bytes() if path.is_file() else b"")
        digest.update(b"\0")
    return digest.hexdigest()[:12]


def tiled_description(device: OpenClDevice, kernels: str) -> BenchDescription:
    """Return on what kernels of this digest compute."""
    texts = ("platform_name", "platform_version", "device_name", "device_version", "driver_version")
    return BenchDescription(
        device=f"{device.device_name} ({device.platform_name}, driver {device.driver_version})",
        n_compute_units=device.compute_units,
        fingerprint=(
            *((name, str(getattr(device, name))) for name in (*texts, "compute_units")),
            ("kernels", kernels),
        ),
    )


def tiled_problem(case: ShapeCase, device: OpenClDevice, limits: DeviceLimits) -> str | None:
    """Return why a device cannot compute a case by the tiled kernels, or None where it can."""
    if case.subject is not Subject.TILED or case.tiling is None:
        return f"subject {case.subject.value}; expected {Subject.TILED.value}"
    wanted = _wanted(case, case.tiling, device, limits)
    return next((f"{what}: {value}; expected {most} at most" for what, value, most in wanted if value > most), None)


def _wanted(
    case: ShapeCase, tiling: Tiling, device: OpenClDevice, limits: DeviceLimits
) -> Iterator[tuple[str, int, int]]:
    """Yield what the kernels are written for, and what the device holds: wanted, and at most."""
    yield "the largest size", max(case.shape.sizes), _MOST_SIZE
    if case.operation is Operation.ATTENTION:
        yield "head", case.shape.of("head"), MOST_HEAD
    buffers, items = buffer_bytes(case.shape), local_size(case.shape, tiling)
    yield "items of a work-group", math.prod(items), limits.group_items
    for axis, (wanted, most) in enumerate(zip(items, limits.axis_items, strict=False)):
        yield f"items of a work-group along axis {axis}", wanted, most
    yield "bytes of local memory", local_bytes(case.shape, tiling), device.local_memory_bytes
    yield "bytes of a buffer", max(buffers), limits.allocation_bytes
    yield "bytes of memory", sum(buffers), device.global_memory_bytes


def local_size(shape: OperationShape, tiling: Tiling) -> tuple[int, int, int]:
    """Return the items of a work-group, along n and m."""
    return tiling.tile // tiling.vector, _rows(shape, tiling) // _item_rows(shape, tiling), 1


def global_size(shape: OperationShape, tiling: Tiling) -> tuple[int, int, int]:
    """Return the items of all work-groups: whole tiles, or a group a head."""
    along_n, along_m, _ = local_size(shape, tiling)
    if shape.operation is Operation.ATTENTION:
        return shape.of("heads") * along_n, 1, 1
    b, m, n, _ = product_sizes(shape)
    return -(-n // tiling.tile) * along_n, -(-m // _rows(shape, tiling)) * along_m, b


def local_bytes(shape: OperationShape, tiling: Tiling) -> int:
    """Return the local memory of a work-group: a step of each operand, for attention also query and output."""
    if shape.operation is Operation.ATTENTION:
        return _F32_BYTES * (STEP * tiling.tile + 2 * MOST_HEAD + tiling.tile)
    return _F32_BYTES * STEP * (tiling.tile + _rows(shape, tiling))


def buffer_bytes(shape: OperationShape) -> tuple[int, ...]:
    """Return the bytes of each buffer: what is stored, activations and output."""
    n_stored = 2 if shape.operation is Operation.ATTENTION else 1
    out = _F32_BYTES * shape.n_outputs
    activations = shape.moved_bytes - shape.stored_bytes - out
    return (*[shape.stored_bytes // n_stored] * n_stored, activations, out)


def _defines(shape: OperationShape, tiling: Tiling) -> tuple[tuple[str, int], ...]:
    stored = ("STORED", GGML_TYPES[shape.type.upper()].number)
    cut = (stored, ("TILE", tiling.tile), ("VECTOR", tiling.vector))
    if shape.operation is Operation.ATTENTION:
        return (*cut, ("MOST_HEAD", MOST_HEAD))
    return (*cut, ("TILE_M", _rows(shape, tiling)), ("ITEM_M", _item_rows(shape, tiling)))


def _scalars(shape: OperationShape) -> tuple[Scalar, ...]:
    if shape.operation is Operation.ATTENTION:
        return (*(np.int32(size) for size in shape.sizes), np.float32(shape.of("head") ** -0.5))
    return tuple(np.int32(size) for size in product_sizes(shape)[1:])


def _rows(shape: OperationShape, tiling: Tiling) -> int:
    return tiling.tile if shape.operation is Operation.GEMM else 1


def _item_rows(shape: OperationShape, tiling: Tiling) -> int:
    """Return the rows m of an item: a weight is read from local memory once for all of them."""
    return min(_rows(shape, tiling), _ITEM_VALUES // tiling.vector)
