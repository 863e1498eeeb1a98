"""The references themselves, against figures worked out by hand and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfsuite.measure import kernel_references as references


@pytest.mark.parametrize(
    ("out", "reference", "expected"),
    [
        ([3, 4.5], [3, 4], 0.1),
        ([3, 4], [0, 0], 5.0),
        ([1, math.nan], [1, 1], math.inf),
        ([1, math.inf], [1, 1], math.inf),
    ],
)
def test_error_norm(out: list[float], reference: list[float], expected: float) -> None:
    """The difference's length over the reference's, against zeros the output's, infinite for what is not finite."""
    assert references.error_norm(np.array(out), np.array(reference, np.float64)) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"\(2,\), expected \(3,\)"):
        references.error_norm(np.array(out), np.zeros(3))


def test_attention_products_share_heads() -> None:
    """Query head h reads cache head h / (heads / kvheads)."""
    rng = np.random.default_rng(0)
    cache, queries, weights = rng.random((5, 2, 3)), rng.random((2, 4, 3)), rng.random((4, 2, 5))
    scores, mixed = references.bmm_kq(cache, queries), references.bmm_kqv(cache, weights)
    for head in range(4):
        assert scores[head, 1, 4] == pytest.approx(cache[4, head // 2] @ queries[1, head])
        np.testing.assert_allclose(mixed[1, head], weights[head, 1] @ cache[:, head // 2])


def test_values_that_are_worked_out_by_hand() -> None:
    """Values of mean square 12.5 are divided by its root; a softmax of large values overflows nowhere."""
    normed = references.rms_norm(np.array([[3.0, 4.0]]), np.array([1.0, 2.0]), 0.0)
    np.testing.assert_allclose(normed, [[3.0 / math.sqrt(12.5), 8.0 / math.sqrt(12.5)]])
    weights = references.softmax(np.array([[10_000.0, 10_000.0 + math.log(3.0)]]), 1.0)
    np.testing.assert_allclose(weights, [[0.25, 0.75]])
    np.testing.assert_allclose(references.silu_mul(np.array([0.0, 50.0]), np.array([7.0, 2.0])), [0.0, 100.0])


@pytest.mark.parametrize(("neox", "pairs"), [(False, ((0, 1), (2, 3))), (True, ((0, 2), (1, 3)))])
def test_rope(neox: bool, pairs: tuple[tuple[int, int], ...]) -> None:
    """Pair i turns by position * base^(-2 i / head), as a complex number does."""
    x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    turned = references.rope(x, np.array([5]), 100.0, neox=neox)[0, 0]
    for i, (first, second) in enumerate(pairs):
        expected = complex(x[0, 0, first], x[0, 0, second]) * np.exp(1j * 5 * 100.0 ** (-2 * i / 4))
        assert complex(turned[first], turned[second]) == pytest.approx(expected)
