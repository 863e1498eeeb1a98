from __future__ import annotations

import gguf
import pytest

from perfsuite.errors import QuantizationError
from perfsuite.workload.ggml_types import GGML_TYPES, GGML_TYPES_BY_NUMBER, is_quantized


def test_block_sizes_agree_with_the_gguf_package() -> None:
    """Numbers and block sizes of weights are those of the gguf package, for every type that it knows."""
    for number, sizes in gguf.GGML_QUANT_SIZES.items():
        found = GGML_TYPES[number.name]
        assert found is GGML_TYPES_BY_NUMBER[number.value]
        assert (found.block_values, found.block_bytes) == sizes or not found.is_weight
        assert is_quantized(number.name) is (sizes[0] > 1)


def test_rows_are_whole_blocks() -> None:
    """A row's bytes follow from its blocks, and a row with a broken block is refused."""
    assert GGML_TYPES["Q4_0"].row_bytes(64) == 36
    with pytest.raises(QuantizationError, match="a row of 40 values is no multiple of Q4_0's 32"):
        GGML_TYPES["Q4_0"].row_bytes(40)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("q8_0", "Q8_0", "q4_k", "Q6_K", "iq4_nl", "mxfp4"), True),
        (("f32", "F32", "f16", "BF16", "i32", "f64", "dance", ""), False),
    ],
)
def test_blocks_of_integers_are_quantised(names: tuple[str, ...], expected: bool) -> None:
    """Types of several values to a block are, whatever the case of their name; single numbers are not, nor no type."""
    assert {is_quantized(name) for name in names} == {expected}
