"""Inputs that ggml stores without loss."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

from perfsuite.measure.shapes.ggml_numbers import ggml_inputs, on_grid
from perfsuite.measure.shapes.shape_references import attention_weights, cached, draw_inputs
from perfsuite.workload.shapes.operation_shape import OperationShape

QUANTISED = ("q8_0", "q4_0", "q4_k")


def shape(text: str) -> OperationShape:
    return OperationShape.from_id(text)


@pytest.mark.parametrize("type", QUANTISED)
@pytest.mark.parametrize("name", ["gemm/m5-n3-k768", "attention/heads6-kvheads2-head256-context33"])
def test_activations_are_stored_without_loss(name: str, type: str) -> None:
    """Through Q8_0 and through F16 the activations of quantised weights come back as they were."""
    activations = ggml_inputs(shape(f"{name}/{type}"), seed=3).activations
    rows = activations.reshape(-1, activations.shape[-1])
    if type != "q4_k":
        stored = quantize(rows, GGMLQuantizationType.Q8_0)
        assert (dequantize(stored, GGMLQuantizationType.Q8_0) == rows).all()
    assert (rows.astype(np.float16).astype(np.float32) == rows).all()
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("type", QUANTISED)
def test_every_block_uses_its_whole_range(type: str) -> None:
    """A block's values are whole numbers up to 127 of a power of 2, with a 127 among them: its scale is exact."""
    values = 256 if type == "q4_k" else 32
    activations = ggml_inputs(shape(f"gemm/m4-n2-k768/{type}"), seed=3).activations.reshape(-1, values)
    steps = np.abs(activations).max(axis=1, keepdims=True) / 127
    assert (np.exp2(np.round(np.log2(steps))) == steps).all()
    assert (activations / steps == np.rint(activations / steps)).all()
    assert len(np.unique(activations / steps)) > 100


def test_the_grid_moves_values_little() -> None:
    """What was drawn is kept to half of a step, except a block's largest value; for F32 nothing is converted."""
    drawn = np.random.default_rng(1).standard_normal((40, 96), dtype=np.float32)
    moved = on_grid(drawn, 32)
    assert np.linalg.norm(moved - drawn) < 0.2 * np.linalg.norm(drawn)
    assert np.corrcoef(moved.ravel(), drawn.ravel())[0, 1] > 0.98
    product = shape("gemm/m3-n5-k7/f32")
    assert (ggml_inputs(product, seed=1).activations == draw_inputs(product, seed=1).activations).all()


@pytest.mark.parametrize("type", ["f32", "f16", "q8_0", "q4_0"])
def test_the_last_position_counts_most(type: str) -> None:
    """The last position of each KV head has the largest share of its heads' output."""
    wanted = shape(f"attention/heads6-kvheads3-head64-context257/{type}")
    inputs = ggml_inputs(wanted, seed=5)
    keys, values = (cached(wanted, each) for each in inputs.stored)
    weights = attention_weights(inputs.activations, keys)
    shares = weights.reshape(3, 2, 257).sum(axis=1) * np.linalg.norm(values, axis=2)
    assert (shares.argmax(axis=1) == 256).all()


def test_positions_weigh_differently() -> None:
    """Scores spread by about 1.5 with any head: no position has everything, and the last more than an equal share."""
    for head in (1, 8, 512):
        wanted = shape(f"attention/heads4-kvheads4-head{head}-context257/f32")
        inputs = ggml_inputs(wanted, seed=5)
        weights = attention_weights(inputs.activations, cached(wanted, inputs.stored[0]))
        assert 0.2 < np.log(weights).std() < 4.0
        assert 2 / 257 < weights[:, -1].max() < 0.9
