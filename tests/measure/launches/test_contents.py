"""What is drawn for buffers."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.measure.kernel_references import dequantize
from perfsuite.measure.launches.contents import Contents, _draws, drawn_array


def test_floats_have_mean_0_and_deviation_1() -> None:
    """Their mean, deviation and largest value are those that are promised, and they are scaled and moved as asked."""
    values = drawn_array(Contents(0, "a").floats(100, 1000))
    assert values.shape == (100, 1000)
    assert values.dtype == np.float32
    assert abs(float(values.mean(dtype=np.float64))) < 0.02
    assert float(values.std(dtype=np.float64)) == pytest.approx(1.0, abs=0.01)
    assert 3.0 < np.abs(values).max() < 3.5
    moved = drawn_array(Contents(0, "a").floats(100, 1000, scale=8.0, offset=1000.0))
    np.testing.assert_array_equal(moved, values * np.float32(8) + np.float32(1000))


def test_halves_are_small() -> None:
    """F16 values are finite, below 2, of both signs, and some are subnormal."""
    values = drawn_array(Contents(0, "a").halves(1000))
    assert values.dtype == np.float16
    assert np.abs(values).max() < 2
    assert values.min() < 0 < values.max()
    assert (np.abs(values) < 2.0**-14).any()


def test_whole_numbers_are_below_their_limit() -> None:
    """All of them are drawn, and no others."""
    values = drawn_array(Contents(0, "a").wholes(7, 1000))
    assert set(values.tolist()) == set(range(7))


@pytest.mark.parametrize(("type", "row_bytes"), [("f32", 256), ("f16", 128), ("q8_0", 68), ("q4_0", 36)])
def test_stored_rows_are_of_their_type(type: str, row_bytes: int) -> None:
    """A row of 64 weights takes the bytes of its type and dequantises to 64 values, of which half are below 0."""
    weights = drawn_array(Contents(0, "a").stored(type, 300, 64))
    assert weights.nbytes == 300 * row_bytes
    values = dequantize(weights, type)
    assert values.shape == (300, 64)
    assert np.isfinite(values).all()
    assert 0.45 < (values < 0).mean() < 0.55


def test_each_content_is_drawn_by_itself() -> None:
    """Two of one launch differ, and neither depends on how long the other is."""
    contents = Contents(3, "a")
    first, second = contents.floats(10), contents.floats(10)
    other = Contents(3, "a")
    other.floats(99)
    assert not np.array_equal(drawn_array(first), drawn_array(second))
    np.testing.assert_array_equal(drawn_array(second), drawn_array(other.floats(10)))
    np.testing.assert_array_equal(drawn_array(first), drawn_array(Contents(3, "a").floats(99))[:10])


def test_draws_are_those_of_splitmix64() -> None:
    """The first draws of seed 1234567 are the published ones."""
    assert _draws(1234567, 3).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]
