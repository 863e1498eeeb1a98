"""How far ggml's operators may be from NumPy's result, where they add up in F16."""

from __future__ import annotations

import math

import numpy as np

from perfsuite.measure.kernel_references import Float64Array, dequantize
from perfsuite.measure.shapes.ggml_inputs import cached
from perfsuite.measure.shapes.shape_inputs import ShapeInputs, product_sizes
from perfsuite.measure.shapes.shape_references import ShapeReference, attention_weights, mixed_values, product
from perfsuite.workload.shapes.operation_shape import Operation
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

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
        b, _, n, k = product_sizes(shape)
        weights = dequantize(inputs.stored[0], shape.type).reshape(b, n, k)
        squares = product(inputs.activations.astype(np.float64) ** 2, weights**2)
    roots: Float64Array = np.sqrt(squares)
    return roots
