"""Random contents and how they lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.measure.kernel_inputs import halves, stored
from perfsuite.measure.kernel_references import dequantize


def test_halves() -> None:
    """Random F16 values are finite, below 2, of both signs, and some are subnormal."""
    values = halves(np.random.default_rng(0), 1000)
    assert np.abs(values).max() < 2
    assert values.min() < 0 < values.max()
    assert (np.abs(values) < 2.0**-14).any()


@pytest.mark.parametrize(("type", "row_bytes"), [("f32", 256), ("f16", 128), ("q8_0", 68), ("q4_0", 36)])
def test_stored(type: str, row_bytes: int) -> None:
    """A row of 64 weights takes the bytes of its type and dequantises to 64 finite values."""
    weights = stored(np.random.default_rng(0), type, 3, 64)
    assert weights.nbytes == 3 * row_bytes
    values = dequantize(weights, type)
    assert values.shape == (3, 64)
    assert np.isfinite(values).all()
