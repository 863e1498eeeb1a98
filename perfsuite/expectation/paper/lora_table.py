"""Table 12: operations of inline adapters, (2r + 2)kn a matrix."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.operators.matmul import lora_update
from perfsuite.expectation.paper.table_row import GIGA, TableRow, llama2_7b, table_rows
from perfsuite.expectation.paper.template import generic_template
from perfsuite.workload.variant import find_variant

#: Ranks of the table: the powers of two from 8 to 256.
RANKS = tuple(1 << exponent for exponent in range(3, 9))


def table_12() -> Iterator[TableRow]:
    """Operations in 1e9 by matrix and rank, and all matrices of all layers together."""
    template = generic_template(llama2_7b(), find_variant("bf16-int4-lora"))
    for rank in RANKS:
        flops = {each.name: lora_update(each.k, each.n, rank).flops for each in template.matrices}
        flops[f"total_x{template.n_layers}"] = template.n_layers * sum(flops.values())
        for layer, count in flops.items():
            yield from table_rows(12, {None: count / GIGA}, layer=layer, rank=rank)
