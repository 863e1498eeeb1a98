"""What an operation should compute at a shape, in NumPy and float64, and how far F32 may be from it.

Storage is exact: a reference takes the stored values that the operation reads, so what is left is its own rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfsuite.measure.kernel_references import Array, Float64Array, dequantize, softmax
from perfsuite.measure.shapes.shape_inputs import ShapeInputs, product_sizes
from perfsuite.workload.shapes.operation_shape import Operation

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
    stored = [dequantize(each, shape.type) for each in inputs.stored]
    if shape.operation is Operation.ATTENTION:
        cached = (shape.of("kvheads"), shape.of("context"), shape.of("head"))
        keys, values = (each.reshape(cached) for each in stored)
        queries = inputs.activations
        weights = attention_weights(queries, keys)
        return ShapeReference(
            expected=mixed_values(weights, values),
            magnitudes=mixed_values(weights, np.abs(values)),
            f32_error_ratio=_attention_error_ratio(queries, keys),
        )
    b, _, n, k = product_sizes(shape)
    weights = stored[0].reshape(b, n, k)
    return ShapeReference(
        expected=product(inputs.activations, weights),
        magnitudes=product(np.abs(inputs.activations), np.abs(weights)),
        f32_error_ratio=sum_error_ratio(k),
    )


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
