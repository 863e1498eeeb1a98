"""What an operation reads and should compute at a shape, in NumPy and float64, and how far F32 may be from it.

Inputs are drawn: activations in F32, and rows of any stored type. Storage is exact: a reference takes the stored values
that the operation reads, so what is left is its own rounding.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from perfsuite.measure.kernel_references import Array, Float64Array, dequantize, floats, halves, softmax
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


#: The unit roundoff of F32: half the distance from 1 to the next number.
F32_ROUNDOFF = 2.0**-24

#: A sum of k rounded products is trusted to stay within so many times ``sqrt(k) F32_ROUNDOFF`` of their magnitudes.
SAFETY = 4.0

#: Relative error of exp, in units of the roundoff: 3 units in the last place (OpenCL C 1.2, section 7.4), each two.
_EXP_ROUNDOFFS = 6.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShapeReference:
    """The output of an operation, and what its rounding errors are relative to."""

    #: [b, m, n], or for attention [heads, head].
    expected: Float64Array
    #: The same sums with each term's absolute value: errors of rounding are proportional to it, where ``expected`` may
    #: be next to nothing because its terms cancel.
    magnitudes: Float64Array
    #: Error of a single output relative to its magnitude that F32 accounts for.
    f32_error_ratio: float

    @property
    def f32_tolerance(self) -> float:
        """The largest ``||out - expected|| / ||expected||`` that summing up in F32 accounts for.

        ``f32_error_ratio ||magnitudes|| / ||expected||``. Where nothing cancels it is ``SAFETY sqrt(k) 2^-24``, 3e-6 at
        k = 128; random signs, of which most cancels, make it sqrt(k) times that. One output of a million that is off
        by its own size is 1e-3.
        """
        expected = float(np.linalg.norm(self.expected)) or 1.0
        return self.f32_error_ratio * float(np.linalg.norm(self.magnitudes)) / expected


def shape_reference(inputs: ShapeInputs) -> ShapeReference:
    """Return what an operation gives for its inputs."""
    shape = inputs.shape
    if shape.operation is Operation.ATTENTION:
        keys, values = (cached(shape, each) for each in inputs.stored)
        queries = inputs.activations
        weights = attention_weights(queries, keys)
        return ShapeReference(
            expected=mixed_values(weights, values),
            magnitudes=mixed_values(weights, np.abs(values)),
            f32_error_ratio=_attention_error_ratio(queries, keys),
        )
    weights = product_weights(inputs)
    return ShapeReference(
        expected=product(inputs.activations, weights),
        magnitudes=product(np.abs(inputs.activations), np.abs(weights)),
        f32_error_ratio=sum_error_ratio(shape.of("k")),
    )


def product_weights(inputs: ShapeInputs) -> Float64Array:
    """Return the values of a product's weights: [b, n, k]."""
    b, _, n, k = product_sizes(inputs.shape)
    return dequantize(inputs.stored[0], inputs.shape.type).reshape(b, n, k)


def cached(shape: OperationShape, stored: Array) -> Float64Array:
    """Return the values of keys or values: [kvheads, context, head]."""
    return dequantize(stored, shape.type).reshape(shape.of("kvheads"), shape.of("context"), shape.of("head"))


def product(activations: Array, weights: Float64Array) -> Float64Array:
    """Return sum over k of ``A[b, m, k] B[b, n, k]``: [b, m, n]."""
    sums: Float64Array = activations.astype(np.float64) @ weights.transpose(0, 2, 1)
    return sums


def attention_weights(queries: Array, keys: Float64Array) -> Float64Array:
    """Return ``softmax(q k / sqrt(head))``: queries [heads, head] and keys [kvheads, context, head] give
    [heads, context]; heads / kvheads heads in succession share a head of the cache.
    """
    scores: Float64Array = (_by_cache_head(queries, keys) @ keys.transpose(0, 2, 1)).reshape(len(queries), -1)
    return softmax(scores, queries.shape[1] ** -0.5)


def mixed_values(weights: Float64Array, values: Float64Array) -> Float64Array:
    """Return the values [kvheads, context, head] mixed by weights [heads, context]: [heads, head]."""
    mixed: Float64Array = (_by_cache_head(weights, values) @ values).reshape(len(weights), -1)
    return mixed


def sum_error_ratio(n_terms: int) -> float:
    """Return by how much a sum of so many products in F32 may be off, relative to the sum of their magnitudes.

    ``SAFETY sqrt(n) u`` with the unit roundoff u: rounding errors are as good as independent, so they add up as sqrt(n)
    and not as the n of the worst case.

    *Source*: Higham and Mary, A new approach to probabilistic rounding error analysis, 2019, theorem 2.4.
    """
    return SAFETY * float(np.sqrt(n_terms)) * F32_ROUNDOFF


def _attention_error_ratio(queries: Array, keys: Float64Array) -> float:
    """Return the share that errors of scores, of exp and of the sums over the context may make.

    A score that is off by d changes its weight by the factor exp(d), and the sum that it is divided by as well.
    """
    head, context = queries.shape[1], keys.shape[1]
    magnitudes = _by_cache_head(np.abs(queries), keys) @ np.abs(keys).transpose(0, 2, 1)
    score_error = sum_error_ratio(head) * float(magnitudes.max()) / float(np.sqrt(head))
    return 2 * (score_error + _EXP_ROUNDOFFS * F32_ROUNDOFF + sum_error_ratio(context))


def _by_cache_head(rows: Array, cache: Float64Array) -> Float64Array:
    """Return rows [heads, x] as [kvheads, heads / kvheads, x]."""
    grouped: Float64Array = rows.astype(np.float64).reshape(len(cache), -1, rows.shape[1])
    return grouped
