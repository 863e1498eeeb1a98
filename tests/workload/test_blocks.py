from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from perfsuite.errors import QuantizationError
from perfsuite.workload.blocks import random_rows
from perfsuite.workload.ggml_types import GGML_TYPES

# The gguf package cannot decode these two.
_UNDECODABLE = ("Q1_0", "Q2_0")


@pytest.mark.parametrize("name", [each.name for each in GGML_TYPES.values() if each.is_weight])
@pytest.mark.parametrize("n_values", [256, 4096])
def test_values_have_the_wanted_spread(name: str, n_values: int) -> None:
    """Rows of any type decode to finite values around 0 with about the deviation that was asked for."""
    deviation = n_values**-0.5
    random = np.random.default_rng(1)
    rows = random_rows(GGML_TYPES[name], 64, n_values, deviation=deviation, random=random)
    assert rows.shape == (64, GGML_TYPES[name].row_bytes(n_values))
    if name in _UNDECODABLE:
        return
    values = dequantize(rows, GGMLQuantizationType[name]).astype(np.float64)
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 0.1 * deviation
    assert values.std() == pytest.approx(deviation, rel=0.35)


def test_other_types_are_refused() -> None:
    """A type that no matrix can have is refused by name."""
    with pytest.raises(QuantizationError, match="ggml type I32 cannot be made up"):
        random_rows(GGML_TYPES["I32"], 1, 32, deviation=1.0, random=np.random.default_rng(0))
