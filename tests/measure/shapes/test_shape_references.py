"""What operations should compute, against loops that say the same; and the random contents of their operands."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfsuite.measure.kernel_references import Array, dequantize, error_norm
from perfsuite.measure.shapes.shape_references import (
    F32_ROUNDOFF,
    ShapeInputs,
    draw_inputs,
    product_sizes,
    shape_reference,
    sum_error_ratio,
)
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, OperationShape


def _inputs(text: str) -> ShapeInputs:
    return draw_inputs(OperationShape.from_id(text), seed=5)


def _product_by_loops(inputs: ShapeInputs) -> Array:
    b, m, n, _ = product_sizes(inputs.shape)
    rows = dequantize(inputs.stored[0], inputs.shape.type)
    out = np.empty((b, m, n))
    for i, j, column in np.ndindex(b, m, n):
        row = rows[i * n + column]
        out[i, j, column] = math.fsum(float(x) * float(y) for x, y in zip(inputs.activations[i, j], row, strict=True))
    return out


def _attention_by_loops(inputs: ShapeInputs) -> Array:
    heads, kvheads, head, context = inputs.shape.sizes
    keys, values = (dequantize(each, inputs.shape.type) for each in inputs.stored)
    out = np.zeros((heads, head))
    for h in range(heads):
        first = h * kvheads // heads * context
        query = inputs.activations[h].astype(float)
        powers = [math.exp(float(query @ keys[first + i]) / math.sqrt(head)) for i in range(context)]
        for i in range(context):
            out[h] += powers[i] / sum(powers) * values[first + i]
    return out


@pytest.mark.parametrize("type", STORED_TYPES)
@pytest.mark.parametrize("text", ["gemm/m3-n5-k256", "bmm/b2-m3-n5-k256", "gemv/n5-k256"])
def test_product(text: str, type: str) -> None:
    """A product is the sum over k of A[b, m, k] B[b, n, k], of the values that are stored."""
    inputs = _inputs(f"{text}/{type}")
    assert shape_reference(inputs).expected == pytest.approx(_product_by_loops(inputs), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("sizes", ["heads6-kvheads2-head32-context7", "heads1-kvheads1-head32-context1"])
@pytest.mark.parametrize("type", ["f32", "f16", "q8_0", "q4_0"])
def test_attention(sizes: str, type: str) -> None:
    """Query heads that follow each other share a head of the cache; each mixes values by the softmax of its scores."""
    inputs = _inputs(f"attention/{sizes}/{type}")
    assert shape_reference(inputs).expected == pytest.approx(_attention_by_loops(inputs), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 33, 1025])
@pytest.mark.parametrize("n", [1, 64])
def test_summing_up_in_f32_is_tolerated(n: int, k: int) -> None:
    for seed in range(20):
        inputs = draw_inputs(OperationShape.from_id(f"gemv/n{n}-k{k}/f32"), seed=seed)
        terms = inputs.stored[0] * inputs.activations[0]
        out = np.add.accumulate(terms, axis=1, dtype=np.float32)[:, -1].reshape(1, 1, n)
        reference = shape_reference(inputs)
        assert error_norm(out, reference.expected) <= reference.f32_tolerance


@pytest.mark.parametrize("k", [33, 1025])
def test_a_missing_term_is_not_tolerated(k: int) -> None:
    inputs = _inputs(f"gemv/n64-k{k}/f32")
    reference = shape_reference(inputs)
    terms = inputs.stored[0].astype(np.float64) * inputs.activations[0]
    short = terms[:, :-1].sum(axis=1).reshape(1, 1, -1)
    halved = np.add.accumulate(terms, axis=1, dtype=np.float16)[:, -1].reshape(1, 1, -1)
    assert error_norm(short, reference.expected) > reference.f32_tolerance
    assert error_norm(halved, reference.expected) > reference.f32_tolerance


def test_tolerance_of_terms_that_do_not_cancel() -> None:
    """Where all terms are positive the tolerance is 4 sqrt(k) roundoffs; where they cancel it is more."""
    text = "gemv/n4-k64/f32"
    drawn = _inputs(text)
    positive = ShapeInputs(shape=drawn.shape, activations=np.abs(drawn.activations), stored=(np.abs(drawn.stored[0]),))
    assert shape_reference(positive).f32_tolerance == pytest.approx(4 * 8 * F32_ROUNDOFF)
    assert shape_reference(drawn).f32_tolerance > 2 * sum_error_ratio(64)


def test_attention_in_f32_is_tolerated() -> None:
    inputs = _inputs("attention/heads4-kvheads4-head64-context300/f32")
    keys, values = (each.reshape(4, 300, 64) for each in inputs.stored)
    scores = np.einsum("hd,hcd->hc", inputs.activations, keys, dtype=np.float32)
    reference = shape_reference(inputs)

    def mixed(scale: float) -> Array:
        powers = np.exp(scores * np.float32(scale), dtype=np.float32)
        weights = powers / powers.sum(axis=1, keepdims=True, dtype=np.float32)
        out: Array = np.einsum("hc,hcd->hd", weights, values, dtype=np.float32)
        return out

    assert error_norm(mixed(0.125), reference.expected) <= reference.f32_tolerance
    assert error_norm(mixed(0.13), reference.expected) > reference.f32_tolerance


@pytest.mark.parametrize("type", STORED_TYPES)
def test_values_are_about_one(type: str) -> None:
    """Stored values are finite, of either sign, and of a size that softmax does not make a single one of."""
    (stored,) = draw_inputs(OperationShape.from_id(f"gemv/n64-k1024/{type}"), seed=3).stored
    values = dequantize(stored, type)
    assert np.isfinite(values).all()
    assert 0.2 < values.std() < 2
    assert 0.2 < (values > 0).mean() < 0.8
