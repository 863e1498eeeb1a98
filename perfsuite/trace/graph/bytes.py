"""How many bytes an operator reads and writes: those of its sources and its result, but of tables only the rows used.

    tensor           (elements - 1) strides apart, and one element (a block of a quantised row)
    GET_ROWS         reads as many rows of the table as it returns
    SET_ROWS         writes as many rows as it is given; the table behind them stays where it is
    MUL_MAT_ID       reads of E experts' matrices, of which n tokens choose u each, E (1 - (1 - u / E)^n): the
                     different ones, were all as likely
    FLASH_ATTN_EXT   is not known: the cache is padded, and masked positions are skipped

*Source*: ggml.c of llama.cpp, ``ggml_nbytes``; ggml-cpu/ops.cpp, ``ggml_compute_forward_flash_attn_ext``.
"""

from __future__ import annotations

from math import prod

from perfsuite.records.events import Node, Tensor
from perfsuite.workload.ggml_types import GGML_TYPES


def tensor_bytes(tensor: Tensor) -> int | None:
    """Return from where to where a tensor reaches, holes and all; None for a type of unknown size."""
    known = GGML_TYPES.get(tensor.type.upper())
    if known is None:
        return None
    if min(tensor.ne) < 1:
        return 0
    row_bytes = -(-tensor.ne[0] // known.block_values) * known.block_bytes
    if known.block_values == 1:
        row_bytes = known.block_bytes + (tensor.ne[0] - 1) * tensor.nb[0]
    return row_bytes + sum((size - 1) * stride for size, stride in zip(tensor.ne[1:], tensor.nb[1:], strict=True))


def operator_bytes(node: Node) -> int | None:
    """Return what one computation of an operator moves at least once; None where that is not known."""
    if node.op == "FLASH_ATTN_EXT":
        return None
    sizes = [_result_bytes(node), *(_source_bytes(node, place) for place in range(len(node.sources)))]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _result_bytes(node: Node) -> int | None:
    if node.op == "SET_ROWS" and node.sources:
        return _rows_bytes(node.tensor, prod(node.sources[0].ne[1:]))
    return tensor_bytes(node.tensor)


def _source_bytes(node: Node, place: int) -> int | None:
    source = node.sources[place]
    if node.op == "GET_ROWS" and place == 0:
        return _rows_bytes(source, prod(node.tensor.ne[1:]))
    if node.op == "SET_ROWS" and place > 1:
        return 0
    if node.op == "MUL_MAT_ID" and place == 0 and len(node.sources) > 2:
        whole, n_experts = tensor_bytes(source), source.ne[2]
        n_used, n_tokens = node.sources[2].ne[:2]
        read_ratio = 1.0 - (1.0 - min(1.0, n_used / max(1, n_experts))) ** n_tokens
        return None if whole is None else round(n_experts * read_ratio) * (whole // max(1, n_experts))
    return tensor_bytes(source)


def _rows_bytes(table: Tensor, n_rows: int) -> int | None:
    known = GGML_TYPES.get(table.type.upper())
    return None if known is None else n_rows * -(-table.ne[0] // known.block_values) * known.block_bytes
