"""Random contents for operations at any shape."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.measure.kernel_references import dequantize
from perfsuite.measure.shapes.shape_inputs import draw_inputs, product_sizes
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, OperationShape


def _shape(text: str) -> OperationShape:
    return OperationShape.from_id(text)


@pytest.mark.parametrize("type", STORED_TYPES)
@pytest.mark.parametrize(
    ("text", "activations", "rows"),
    [
        ("gemm/m3-n5-k256", (1, 3, 256), (5,)),
        ("bmm/b2-m3-n5-k256", (2, 3, 256), (10,)),
        ("gemv/n5-k256", (1, 1, 256), (5,)),
        ("attention/heads6-kvheads2-head256-context7", (6, 256), (14, 14)),
    ],
)
def test_sizes(text: str, activations: tuple[int, ...], rows: tuple[int, ...], type: str) -> None:
    """Activations are F32; stored rows take the bytes that the shape counts, and hold a row's values each."""
    inputs = draw_inputs(_shape(f"{text}/{type}"), seed=3)
    assert inputs.activations.shape == activations
    assert inputs.activations.dtype == np.float32
    assert sum(each.nbytes for each in inputs.stored) == inputs.shape.stored_bytes
    assert [dequantize(each, type).shape for each in inputs.stored] == [(n_rows, 256) for n_rows in rows]


@pytest.mark.parametrize("type", STORED_TYPES)
def test_values_are_about_one(type: str) -> None:
    """Stored values are finite, of either sign, and of a size that softmax does not make a single one of."""
    (stored,) = draw_inputs(_shape(f"gemv/n64-k1024/{type}"), seed=3).stored
    values = dequantize(stored, type)
    assert np.isfinite(values).all()
    assert 0.2 < values.std() < 2
    assert 0.2 < (values > 0).mean() < 0.8


def test_drawn_by_seed_and_shape() -> None:
    inputs, again, reseeded, other = (
        draw_inputs(_shape(f"attention/heads2-kvheads1-head8-context{context}/f16"), seed=seed)
        for seed, context in ((1, 4), (1, 4), (2, 4), (1, 5))
    )
    assert (inputs.activations == again.activations).all()
    assert (inputs.stored[0] == again.stored[0]).all()
    assert not (inputs.activations == reseeded.activations).any()
    assert not (inputs.activations == other.activations).any()
    assert (inputs.stored[0] != inputs.stored[1]).any()


def test_product_sizes() -> None:
    assert product_sizes(_shape("gemm/m3-n5-k7/f32")) == (1, 3, 5, 7)
    assert product_sizes(_shape("bmm/b2-m3-n5-k7/f32")) == (2, 3, 5, 7)
    assert product_sizes(_shape("gemv/n5-k7/f32")) == (1, 1, 5, 7)
