"""Random contents for an operation at a shape: activations in F32, and rows of any stored type."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from perfsuite.measure.kernel_references import Array, floats, halves
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape

#: F16 scales that a block begins with, by type, and what they are multiplied by so that values are about 1: random
#: bytes are 74 of Q8_0's steps and 5 of Q4_0's; Q4_K's nibbles are multiplied by another 6 bits.
_SCALES = {"q8_0": (1, 2.0**-6), "q4_0": (1, 2.0**-2), "q4_k": (2, 2.0**-8)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShapeInputs:
    """What an operation reads."""

    shape: OperationShape
    #: F32 [b, m, k], or for attention the queries [heads, head].
    activations: Array
    #: Rows as they lie in memory: F32 or F16 [rows, values], else blocks as uint8 [rows, bytes]. Of a product the b n
    #: rows of weights; of attention the kvheads context rows of keys, and as many of values.
    stored: tuple[Array, ...]


def draw_inputs(shape: OperationShape, *, seed: int) -> ShapeInputs:
    """Return inputs that the seed and the shape determine, of each shape independently of the others."""
    rng = np.random.default_rng([seed, zlib.crc32(shape.id.encode())])
    if shape.operation is Operation.ATTENTION:
        rows, columns = shape.of("kvheads") * shape.of("context"), shape.of("head")
        queries = floats(rng, shape.of("heads"), columns)
        keys, values = (stored_rows(rng, shape.type, rows, columns) for _ in range(2))
        return ShapeInputs(shape=shape, activations=queries, stored=(keys, values))
    b, m, n, k = product_sizes(shape)
    activations = floats(rng, b, m, k)
    return ShapeInputs(shape=shape, activations=activations, stored=(stored_rows(rng, shape.type, b * n, k),))


def product_sizes(shape: OperationShape) -> tuple[int, int, int, int]:
    """Return b, m, n and k of a product; b is 1 except BMM, m is 1 for GEMV."""
    sizes = {"b": 1, "m": 1, **dict(zip(shape.operation.dimensions, shape.sizes, strict=True))}
    return sizes["b"], sizes["m"], sizes["n"], sizes["k"]


def stored_rows(rng: Generator, type: str, rows: int, columns: int) -> Array:
    """Return rows as they are in memory: F32, F16, or blocks of random bits whose F16 scales are finite and small."""
    if type == "f32":
        return floats(rng, rows, columns)
    if type == "f16":
        return halves(rng, rows, columns)
    layout, (n_scales, unit) = GGML_TYPES[type.upper()], _SCALES[type]
    n_blocks = columns // layout.block_values
    blocks = rng.integers(256, size=(rows, n_blocks, layout.block_bytes), dtype=np.uint8)
    scales = halves(rng, rows, n_blocks, n_scales) * np.float16(unit)
    blocks[..., : 2 * n_scales] = scales.view(np.uint8)
    return blocks.reshape(rows, -1)
