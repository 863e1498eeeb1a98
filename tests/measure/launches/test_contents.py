"""What is drawn for buffers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from perfsuite.measure.launches.contents import Contents, counted, drawn_array
from perfsuite.measure.launches.plan import Content, ContentKind


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


def test_each_content_is_drawn_by_itself() -> None:
    """Two of one launch differ, and neither depends on how long the other is."""
    contents = Contents(3, "a")
    first, second = contents.floats(10), contents.floats(10)
    other = Contents(3, "a")
    other.floats(99)
    assert not np.array_equal(drawn_array(first), drawn_array(second))
    np.testing.assert_array_equal(drawn_array(second), drawn_array(other.floats(10)))
    np.testing.assert_array_equal(drawn_array(first), drawn_array(Contents(3, "a").floats(99))[:10])


def content(kind: ContentKind, seed: int, n_bytes: int, **rest: Any) -> Content:
    return Content(kind=kind, seed=seed, n_bytes=n_bytes, dtype="uint8", shape=(n_bytes,), **rest)


@pytest.mark.parametrize(
    ("drawn", "digest"),
    [
        (content(ContentKind.FLOATS, 7, 4004), "6ef99b5869495a793ea1eb335ede053d566d8241bd67cfee839ace1994bf7827"),
        (
            content(ContentKind.FLOATS, 7, 4004, scale=8.0, offset=1000.0),
            "4564d9638599d5047fbd08cb30f98f07363f7a7f5325b11ba61eddf10a660669",
        ),
        (
            content(ContentKind.BITS, 8, 1003, mask=b"\xff\xbf\xff"),
            "c79ff74d5cb81afa628737dd26054837fbeff997caf0cefe728e091f8b2a08d3",
        ),
        (
            content(ContentKind.WHOLES, 9, 4004, limit=49152),
            "8702caf66a68d06490970f4af4d62b3ba5aa9c8616ad4be8d09ed7cb6cf0f40e",
        ),
        (counted(251, 1001, offset=2.0), "058240ebb4efecc84d22eb5d34f731384cd1673e133aabfbca6e6b3c49b796e6"),
    ],
    ids=["floats", "scaled", "bits", "wholes", "cycle"],
)
def test_contents_are_those_of_the_native_worker(drawn: Content, digest: str) -> None:
    """Each kind has the bytes that native/tests/test_launcher.cpp expects of the other half."""
    assert hashlib.sha256(drawn_array(drawn).tobytes()).hexdigest() == digest
