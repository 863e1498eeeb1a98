"""RoPE as the paper evaluates it: over the tokens of a pass, or over its whole table."""

from __future__ import annotations

from enum import Enum

from perfsuite.expectation.operators.matmul import ROPE_FLOPS, kept_on_chip, rope
from perfsuite.expectation.operators.number_format import BF16
from perfsuite.expectation.paper.template import ROPE_POSITIONS, OperatorKey, Operators, Template
from perfsuite.records.op_cost import OpCost

#: Tables' worth that one evaluation over the whole table reads and writes unfused: x, its turned halves and the
#: table in, x out. Fitted to Table 7, 0.25 GiB for 2 x 32 evaluations; fused it reads the table alone.
_WHOLE_READS = 3
_WHOLE_WRITES = 1


class RopeReach(Enum):
    """Which positions RoPE is evaluated for, and which of its tables' rows it reads."""

    #: The tokens of the pass, and their rows of the tables: prefill.
    TOKENS = "tokens"
    #: The token alone, but the whole tables are read: decode in Tables 9 and 11.
    PER_TOKEN = "per-token"
    #: All positions of the tables for one token: decode in Tables 7 and 10.
    WHOLE_TABLE = "whole-table"


def table_elements(template: Template) -> tuple[int, int]:
    """Elements of the RoPE tables of queries and keys, cosines and sines together; a layer reads each once."""
    return ROPE_POSITIONS * template.q_table_width, ROPE_POSITIONS * template.k_table_width


def rotary(template: Template, m: int, reach: RopeReach) -> Operators:
    """Cost RoPE on queries and keys; fused, what it turns stays on chip or goes straight into the KV cache."""
    widths = (template.q_rope_width, template.k_rope_width)
    if reach is RopeReach.WHOLE_TABLE:
        yield from _whole_tables(template)
        return
    if reach is RopeReach.TOKENS:
        read = (m * template.q_table_width, m * template.k_table_width)
    else:
        read = table_elements(template)
    for width, elements in zip(widths, read, strict=True):
        cost = rope(m, width, table_elements=elements, activations=template.activations)
        kept = template.fused * cost.written_bytes
        yield OperatorKey.ROPE, kept_on_chip(cost, written_bytes=kept, n_dispatches=int(template.fused))


def _whole_tables(template: Template) -> Operators:
    """Queries, keys and, where they come from a quantised cache, keys once more."""
    q_elements, k_elements = table_elements(template)
    n_reads, n_writes = (1, 0) if template.fused else (_WHOLE_READS, _WHOLE_WRITES)
    for elements in (q_elements, k_elements, *((k_elements,) * template.kv.is_quantized)):
        table_bytes = BF16.stored_bytes(elements)
        cost = OpCost(
            flops=ROPE_FLOPS * elements,
            read_bytes=n_reads * table_bytes,
            written_bytes=n_writes * table_bytes,
            parameter_bytes=table_bytes,
            n_dispatches=int(not template.fused),
        )
        yield OperatorKey.ROPE, cost
