"""Inputs for ggml's operators that it converts without loss, so that its result has one right value on any processor.

ggml's CPU backend multiplies no F32 by quantised weights: it first stores the activations as the weights' partner type,
F16, Q8_0 or Q8_K. How it rounds differs by processor. Activations that are whole numbers up to 127 of a block's own
power of 2, with a 127 among them, are what all of them store exactly: a block's scale is its largest value over 127.

*Source*: ``type_traits_cpu`` in ggml-cpu.c and ``quantize_row_q8_0``, ``quantize_row_q8_K`` of ggml 0.25.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from perfsuite.measure.kernel_references import Array, Float64Array, dequantize
from perfsuite.measure.shapes.shape_references import (
    ShapeInputs,
    ShapeReference,
    attention_weights,
    cached,
    draw_inputs,
    mixed_values,
    product,
    product_weights,
)
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

#: The largest whole number of a block of Q8_0 or Q8_K.
_MOST = 127
#: Standard deviation of the scores of attention: some positions weigh much more than others, and none nearly all.
_SCORE_SPREAD = 1.5


def ggml_inputs(shape: OperationShape, *, seed: int) -> ShapeInputs:
    """Draw inputs as for any subject, their activations on the grid of the type that ggml stores them in.

    Of attention the position that counts most is the last: in F16 sums the others drown in each other's rounding.
    """
    inputs = draw_inputs(shape, seed=seed)
    if shape.type != "f32":
        n_shared = max(32, GGML_TYPES[shape.type.upper()].block_values)  # of a scale in what ggml stores: Q8_K or Q8_0
        inputs = replace(inputs, activations=on_grid(inputs.activations, n_shared))
    if shape.operation is not Operation.ATTENTION:
        return inputs
    spread = replace(inputs, activations=_scaled_queries(inputs))
    return replace(spread, stored=_heaviest_last(spread))


def on_grid(activations: Array, block_values: int) -> Array:
    """Return rows as whole numbers up to 127 times a power of 2, by blocks; the largest of each block is 127."""
    values = np.array(activations, dtype=np.float32)
    rows = values.reshape(-1, values.shape[-1])
    for first in range(0, rows.shape[1], block_values):
        block = rows[:, first : first + block_values]
        largest = np.abs(block).argmax(axis=1)[:, None]
        most = np.abs(np.take_along_axis(block, largest, axis=1))
        step = np.exp2(np.round(np.log2(np.maximum(most, np.float32(2.0**-10)) / _MOST))).astype(np.float32)
        whole = np.clip(np.rint(block / step), -_MOST, _MOST)
        signs = np.where(np.take_along_axis(whole, largest, axis=1) < 0, -_MOST, _MOST)
        np.put_along_axis(whole, largest, signs.astype(np.float32), axis=1)
        block[...] = whole * step
    return values


def _scaled_queries(inputs: ShapeInputs) -> Array:
    """Scale by a power of 2, which loses nothing, to scores that differ by about `_SCORE_SPREAD`."""
    keys = dequantize(inputs.stored[0], inputs.shape.type)
    typical = float(np.sqrt(np.mean(keys**2) * np.mean(inputs.activations.astype(np.float64) ** 2)))
    factor = np.float32(2.0 ** round(np.log2(_SCORE_SPREAD / typical))) if typical else np.float32(1.0)
    scaled: Array = inputs.activations * factor
    return scaled


def _heaviest_last(inputs: ShapeInputs) -> tuple[Array, ...]:
    """Exchange the last position of each KV head with the one whose values weigh most."""
    shape = inputs.shape
    kv_heads, context = shape.of("kvheads"), shape.of("context")
    keys, values = (cached(shape, each) for each in inputs.stored)
    weights = attention_weights(inputs.activations, keys).reshape(kv_heads, -1, context).sum(axis=1)
    heaviest = (weights * np.linalg.norm(values, axis=2)).argmax(axis=1)
    heads, exchanged = np.arange(kv_heads), []
    for stored in inputs.stored:
        rows = stored.reshape(kv_heads, -1, stored.shape[1]).copy()
        rows[heads, heaviest], rows[:, -1] = rows[:, -1].copy(), rows[heads, heaviest].copy()
        exchanged.append(rows.reshape(stored.shape))
    return tuple(exchanged)


#: The unit roundoff of F16: half the distance from 1 to the next number.
F16_ROUNDOFF = 2.0**-11

#: A sum in F16 is trusted to stay within so many times ``sqrt(n) F16_ROUNDOFF``; a fifth to a third is typical.
_SAFETY = 2.0

#: F16 sums that a product of F16 rows is kept in on Arm, side by side (``GGML_F16_STEP`` in simd-mappings.h).
_ARM_SUMS = 32

#: Processors whose F16 products ggml adds up in F16.
_HALF_MACHINES = ("aarch64", "arm64")


def ggml_tolerance(case: ShapeCase, inputs: ShapeInputs, reference: ShapeReference, *, machine: str) -> float:
    """Return the largest error norm that counts as correct of what a machine computed, such as ``aarch64``.

    It is that of F32 sums, plus ``2 sqrt(n) u ||rss|| / ||expected||`` where a sum of n terms is kept in F16: a step's
    rounding is at most u = 2^-11 of a sum that has come, like a random walk, to the root of the sum of its terms'
    squares (rss), and rounding errors are as good as independent.

    The CPU backend keeps the mixed values of an F16 cache in F16, and on Arm the products of F16 rows as well; OpenCL
    adds up in F32.

    *Source*: ``ggml_compute_forward_flash_attn_ext_f16_one_chunk`` in ops.cpp, ``ggml_vec_dot_f16`` in vec.cpp of ggml
    0.25.
    """
    n_terms = _half_terms(case, machine)
    if n_terms == 0.0:
        return reference.f32_tolerance
    expected = float(np.linalg.norm(reference.expected)) or 1.0
    ratio = float(np.linalg.norm(_root_sum_squares(inputs))) / expected
    return reference.f32_tolerance + _SAFETY * math.sqrt(n_terms) * F16_ROUNDOFF * ratio


def _half_terms(case: ShapeCase, machine: str) -> float:
    """Return how many terms are added up in F16 one after the other, 0 where none are."""
    shape = case.shape
    if case.subject is not Subject.GGML_CPU or shape.type != "f16":
        return 0.0
    is_half = machine in _HALF_MACHINES
    inner = shape.of(shape.operation.inner_dimension)
    in_products = max(1.0, inner / _ARM_SUMS) if is_half else 0.0
    return in_products + (shape.of("context") if shape.operation is Operation.ATTENTION else 0)


def _root_sum_squares(inputs: ShapeInputs) -> Float64Array:
    shape = inputs.shape
    if shape.operation is Operation.ATTENTION:
        keys, values = (cached(shape, each) for each in inputs.stored)
        squares = mixed_values(attention_weights(inputs.activations, keys) ** 2, values**2)
    else:
        squares = product(inputs.activations.astype(np.float64) ** 2, product_weights(inputs) ** 2)
    roots: Float64Array = np.sqrt(squares)
    return roots
