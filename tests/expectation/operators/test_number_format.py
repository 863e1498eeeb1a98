"""Stored sizes of elements and of matrices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import QuantizationError
from perfsuite.expectation.operators.number_format import NUMBER_FORMATS, NumberFormat, find_format
from perfsuite.workload.ggml_types import GGML_TYPES

_ANY_FORMAT = st.sampled_from(sorted(NUMBER_FORMATS.values(), key=lambda each: each.name))
_COUNT = st.integers(0, 100_000)
_EDGE = st.integers(1, 5000)


@pytest.mark.parametrize(
    ("name", "n_bytes"),
    [
        *(("bf16", 20), ("fp16", 20), ("fp32", 40), ("int8", 10), ("int16", 20), ("int4", 5)),
        *(("mxfp8", 33), ("MXINT8", 33), ("q4_0", 18), ("Q6_K", 210)),
    ],
)
def test_ten_elements_take_whole_blocks(name: str, n_bytes: int) -> None:
    """Values are stored in whole bytes or blocks of their format."""
    assert find_format(name).stored_bytes(10) == n_bytes


@pytest.mark.parametrize(
    ("name", "k", "n", "n_bytes"),
    [
        *(("int4", k, 4096, k * 4096 * 133 // 256) for k in (128, 4096, 11008)),
        ("int4", 129, 3, 3 * 65 + 15),
        ("int4", 1, 1, 1 + 3),
        ("mxfp8", 64, 10, 10 * 66),
        ("mxint8", 64, 10, 10 * 66),
    ],
)
def test_matrices_carry_the_parameters_of_their_groups(name: str, k: int, n: int, n_bytes: int) -> None:
    """128 int4 weights along k share 2 bytes of scale and half a byte of zero, rounded up once; 32 of MX 8 bits."""
    assert find_format(name).matrix_bytes(k, n) == n_bytes


@pytest.mark.parametrize("name", sorted(GGML_TYPES))
def test_a_ggml_type_has_its_true_blocks(name: str) -> None:
    """A row of whole blocks takes what ggml stores."""
    kind = GGML_TYPES[name]
    assert find_format(name).stored_bytes(3 * kind.block_values) == kind.row_bytes(3 * kind.block_values)


@given(_ANY_FORMAT, _COUNT, _COUNT)
def test_more_elements_never_take_less(number_format: NumberFormat, few: int, more: int) -> None:
    """Stored bytes grow with the elements, are integers, and are not lost when two runs are joined."""
    both = number_format.stored_bytes(few + more)
    assert isinstance(both, int)
    assert max(number_format.stored_bytes(few), number_format.stored_bytes(more)) <= both
    assert both <= number_format.stored_bytes(few) + number_format.stored_bytes(more)


@given(_ANY_FORMAT, _EDGE, _EDGE)
def test_a_matrix_grows_with_both_sides(number_format: NumberFormat, k: int, n: int) -> None:
    """A matrix takes no less than its values, and no more when a side is shorter."""
    n_bytes = number_format.matrix_bytes(k, n)
    assert n_bytes >= n * number_format.stored_bytes(k) > 0
    assert number_format.matrix_bytes(k + 1, n) >= n_bytes
    assert number_format.matrix_bytes(k, n + 1) > n_bytes


def test_floats_are_not_dequantised() -> None:
    """Only the plain floating-point formats are multiplied as they are stored."""
    plain = {name for name, each in NUMBER_FORMATS.items() if not each.is_quantized}
    assert plain == {"bf16", "fp16", "fp32", "f16", "f32", "f64"}


def test_an_unknown_format_is_refused_with_what_is_accepted() -> None:
    """The error names the format and lists the known ones."""
    with pytest.raises(QuantizationError, match=r"number format 'int3' is unknown; accepted are .*bf16"):
        find_format("int3")
