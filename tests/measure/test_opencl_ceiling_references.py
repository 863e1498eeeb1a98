"""What the kernels are compared with, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.measure.opencl_ceiling_references import TRIED_PASSES, chained, small_numbers, streamed


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("read", [1, 2, 1024, 2048, 5, 6, 7, 8]),
        ("copy", [1, 2, 1, 2, 5, 6, 7, 8]),
        ("triad", [1, 2, 1024, 2048, 2, 4, 7, 8]),
    ],
)
def test_streams_write_their_last_array(kind: str, after: list[float]) -> None:
    """A read writes nothing, a copy its second array, a triad its third, and nothing behind it."""
    before = np.array([1, 2, 1024, 2048, 5, 6, 7, 8], dtype=np.float32)
    assert streamed(before, kind, 2).tolist() == after


def test_chains_of_floats() -> None:
    """From 0 a chain of acc / 2 + 1 goes to 1, 1.5, 1.75; from s it ends s / 8 higher."""
    assert TRIED_PASSES == 3
    assert chained("FP32", 1, 1, 4).tolist() == [4 * 1.75 + (0 + 1 + 2 + 3) / 8]
    assert chained("F16", 10, 2, 4)[9] == 8 * 1.75 + sum(1 + k + lane for k in (0, 1) for lane in range(4)) / 8


def test_chains_of_bytes() -> None:
    """Each step adds the product of the four signed bytes with -5, 2, -3, 1; the starts spread over all four."""

    def step(value: int) -> int:
        signed = [byte - 256 if byte > 127 else byte for byte in (value % 2**32).to_bytes(4, "little")]
        return value + sum(byte * weight for byte, weight in zip(signed, (-5, 2, -3, 1), strict=True))

    assert step(1) == -4
    assert step(0x7F000000) == 0x7F000000 + 127
    expected = sum(step(step(step(lane * 0x9E3779B1))) for lane in range(4)) % 2**32
    assert chained("INT8", 1, 1, 4).tolist() == [expected]
    assert chained("DOT", 1, 1, 4).tolist() == [expected]


def test_small_numbers_are_exact_in_16_bits() -> None:
    """Every number and its sum with a 1024th of another is a float that loses nothing."""
    numbers = small_numbers(1000)
    assert numbers.max() == 250
    assert (numbers.astype(np.float16) == numbers).all()
    assert (numbers + numbers[::-1] / np.float32(1024) == numbers.astype(np.float64) + numbers[::-1] / 1024).all()
