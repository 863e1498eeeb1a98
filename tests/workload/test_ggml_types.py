from __future__ import annotations

import gguf
import pytest

from perfsuite.errors import QuantizationError
from perfsuite.workload.ggml_types import GGML_TYPES, GGML_TYPES_BY_NUMBER


def test_block_sizes_agree_with_the_gguf_package() -> None:
    """Numbers and block sizes of weights are those of the gguf package, for every type that it knows."""
    for number, sizes in gguf.GGML_QUANT_SIZES.items():
        found = GGML_TYPES[number.name]
        assert found is GGML_TYPES_BY_NUMBER[number.value]
        assert (found.block_values, found.block_bytes) == sizes or not found.is_weight


def test_rows_are_whole_blocks() -> None:
    """A row's bytes follow from its blocks, and a row with a broken block is refused."""
    assert GGML_TYPES["Q4_0"].row_bytes(64) == 36
    with pytest.raises(QuantizationError, match="a row of 40 values is no multiple of Q4_0's 32"):
        GGML_TYPES["Q4_0"].row_bytes(40)
