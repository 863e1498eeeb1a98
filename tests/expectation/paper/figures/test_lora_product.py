"""Figure 9."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.figures import figure_9

RANKS = (8, 16, 32, 64, 128, 256)


def test_an_adapter_costs_the_same_at_every_prompt() -> None:
    """(2r + 2)kn operations more than the bare product, as in Table 12."""
    merged, *adapted = figure_9().panels[0].lines
    assert [line.label for line in adapted] == [f"rank {rank}" for rank in RANKS]
    for rank, line in zip(RANKS, adapted, strict=True):
        update = (2 * rank + 2) * 4096 * 4096 / 1e9
        assert [y - bare for y, bare in zip(line.y, merged.y, strict=True)] == pytest.approx([update] * len(line.y))


def test_the_bare_product_multiplies_and_dequantises() -> None:
    """2mkn + 2kn operations, in 1e9."""
    merged = figure_9().panels[0].lines[0]
    assert merged.x == tuple(2**power for power in range(17))
    assert merged.y == pytest.approx([(2 * m + 2) * 4096 * 4096 / 1e9 for m in merged.x])


def test_operations_against_merged_fall_to_one() -> None:
    """(2m + 2r + 4) / (2m + 2) at every prompt and rank."""
    merged, *adapted = figure_9().panels[1].lines
    assert set(merged.y) == {1.0}
    assert "takes 6 to 130 times the operations for one token, at most 0.4 % more for 65536" in figure_9().title
    for rank, line in zip(RANKS, adapted, strict=True):
        assert line.y == pytest.approx([(2 * m + 2 * rank + 4) / (2 * m + 2) for m in line.x])


def test_bytes_against_merged_are_those_of_the_two_factors() -> None:
    """A and B in bf16 over 4-bit weights with their scales and zeros, and the activations."""
    _, *adapted = figure_9().panels[2].lines
    weights_bytes = 4096 * 4096 // 2 + 4096 * 4096 // 128 * 5 // 2
    for rank, line in zip(RANKS, adapted, strict=True):
        factors_bytes = 2 * 2 * 4096 * rank
        expected = [1 + factors_bytes / (weights_bytes + 2 * 2 * m * 4096) for m in line.x]
        assert line.y == pytest.approx(expected, rel=1e-6)
