"""Table 11."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.attention_table import table_11

_MIB = 1 << 20
_VALUES = {tuple(dict(row.inputs).values()): row.value for row in table_11()}
#: Weights and RoPE tables in MiB, and elements of a position: cached K and V, operand K, operand V.
_ATTENTIONS = {
    "MHA": (128 + 2, 2 * 32 * 128, 32 * 128, 32 * 128),
    "GQA": (64 + 16 + 2, 2 * 8 * 128, 32 * 128, 32 * 128),
    "MQA": (64 + 2 + 2, 2 * 128, 32 * 128, 32 * 128),
    "MLA": (38 + 16 + 0.5, 32 * 256, 32 * 192, 32 * 128),
}
_BYTES = {"Eager": 2.0, "Fused": 2.0, "Fused-KV8": 1.0, "Fused-KV4": 0.5}


@pytest.mark.parametrize("attention", _ATTENTIONS)
@pytest.mark.parametrize("mode", _BYTES)
def test_a_cell_is_the_closed_form_cut(mode: str, attention: str) -> None:
    """Weights, tables and 8192 + token - 1 positions of cache, operand K and, eager, operand V and scores; cut."""
    constant, cached, operand_k, operand_v = _ATTENTIONS[attention]
    elements = cached + operand_k + (operand_v if mode == "Eager" else 0)
    scores = 4 * 32 * 2 if mode == "Eager" else 0
    for token in (1, 2, 256, 1024, 2000):
        mib = constant + (8192 + token - 1) * (elements * _BYTES[mode] + scores) / _MIB
        assert _VALUES[mode, attention, token] == int(mib)
        assert isinstance(_VALUES[mode, attention, token], int)


def test_every_mode_has_every_attention_and_token() -> None:
    """Four modes, four attentions, the powers of two up to 1024 and the 2000th token."""
    assert set(_VALUES) == {
        (mode, attention, token)
        for mode in _BYTES
        for attention in _ATTENTIONS
        for token in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2000)
    }
