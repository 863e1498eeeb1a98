"""Table 12."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.lora_table import RANKS, table_12

_SQUARE, _WIDE = 4096 * 4096, 4096 * 11008


@pytest.mark.parametrize("rank", [8, 16, 32, 64, 128, 256])
def test_a_rank_is_the_closed_form(rank: int) -> None:
    """(2r + 2)kn a matrix; all of them are seven matrices of 32 layers."""
    values = {dict(row.inputs)["layer"]: row.value for row in table_12() if dict(row.inputs)["rank"] == rank}
    weights = {
        **dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), _SQUARE),
        **dict.fromkeys(("gate_proj", "up_proj", "down_proj"), _WIDE),
        "total_x32": 32 * (4 * _SQUARE + 3 * _WIDE),
    }
    assert values == {layer: (2 * rank + 2) * kn / 1e9 for layer, kn in weights.items()}


def test_ranks_are_powers_of_two() -> None:
    """8 to 256."""
    assert RANKS == (8, 16, 32, 64, 128, 256)
