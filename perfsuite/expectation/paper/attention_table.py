"""Table 11: what one attention block of Llama2-7B reads at a decode step, by mode and kind of attention.

Weights in bf16, the RoPE tables, the compact KV cache and the operands repeated to all heads; no activations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perfsuite.expectation.operators.number_format import BF16
from perfsuite.expectation.paper.rotary import table_elements
from perfsuite.expectation.paper.table_row import MIB, TableRow, llama2_7b, table_rows
from perfsuite.expectation.paper.template import Template, template_of
from perfsuite.workload.variant import Variant

#: Positions before the first token. Recovered from the cells, which are 8192 positions of cache and operands apart
#: from the weights; the paper does not print it.
N_PAST = 8192
#: Times that the scores of a position are written and read where attention is not fused.
_SCORE_MOVES = 4
#: The first and the last token of the paper, and the powers of two between.
_TOKENS = (*(1 << exponent for exponent in range(11)), 2000)
#: Format of the KV cache and fusion by mode, and KV heads by attention; latent attention has all heads.
_MODES = {"Eager": ("bf16", False), "Fused": ("bf16", True), "Fused-KV8": ("int8", True), "Fused-KV4": ("int4", True)}
_KV_HEADS = {"MHA": 32, "GQA": 8, "MQA": 1, "MLA": 32}


def table_11() -> Iterator[TableRow]:
    """MiB, cut to an integer as the paper cuts it, by mode, attention and token."""
    for mode in _MODES:
        for attention in _KV_HEADS:
            template = _template(mode, attention)
            for token in _TOKENS:
                mib = attention_bytes(template, N_PAST + token - 1) // MIB
                yield from table_rows(11, {None: mib}, mode=mode, attention=attention, token=token)


def attention_bytes(template: Template, n_past: int) -> int:
    """Bytes of one attention block after `n_past` positions.

    Weights + RoPE tables + n_past (cached row + K operand [+ V operand + 4 x heads x 2 bytes of scores if unfused]).
    """
    matrices = (*template.attention_inputs, template.attention_output)
    weights = sum(template.weights.matrix_bytes(each.k, each.n) for each in matrices)
    return weights + BF16.stored_bytes(sum(table_elements(template))) + n_past * _position_bytes(template)


def _position_bytes(template: Template) -> int:
    kept = template.cache_row_bytes + template.kv.stored_bytes(template.q_width)
    if template.fused:
        return kept
    scores = _SCORE_MOVES * template.activations.stored_bytes(template.n_heads)
    return kept + template.kv.stored_bytes(template.v_width) + scores


def _template(mode: str, attention: str) -> Template:
    kv, fused = _MODES[mode]
    is_latent = attention == "MLA"
    variant = Variant(name=mode, weights="bf16", activations="bf16", kv=kv, fused=fused, mla=is_latent)
    return template_of(replace(llama2_7b(), n_kv_heads=_KV_HEADS[attention]), variant)
