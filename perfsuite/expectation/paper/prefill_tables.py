"""Tables 4 and 5: what a prompt of Llama2-7B computes and moves."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.paper.operator_key import OperatorKey
from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.table_row import GIB, PROMPTS, TERA, TableRow, llama2_7b, table_rows
from perfsuite.workload.variant import find_variant, variant_names

#: The variant that Table 4 is about.
_PLAIN = "bf16-bf16"
_SHARES = {"gemm_pct": OperatorKey.GEMM, "bmm_pct": OperatorKey.BMM, "softmax_pct": OperatorKey.SOFTMAX}


def table_4() -> Iterator[TableRow]:
    """Shares of operators in percent of all operations, operations in 1e12, KV cache in GiB, over prompts."""
    for prompt in PROMPTS:
        cost = prefill_pass(llama2_7b(), find_variant(_PLAIN), prompt)
        values = {metric: 100.0 * cost.flops_shares[key.value] for metric, key in _SHARES.items()}
        values |= {"tops": cost.total.flops / TERA, "kv_gib": cost.total.kv_written_bytes / GIB}
        yield from table_rows(4, values, prompt=prompt)


def table_5() -> Iterator[TableRow]:
    """Operations in 1e12, bytes read and written and KV cache in GiB, over variants and prompts."""
    for variant in variant_names():
        for prompt in PROMPTS:
            total = prefill_pass(llama2_7b(), find_variant(variant), prompt).total
            values = {
                "tops": total.flops / TERA,
                "memrd_gib": total.read_bytes / GIB,
                "memwr_gib": total.written_bytes / GIB,
                "kv_gib": total.kv_written_bytes / GIB,
            }
            yield from table_rows(5, values, variant=variant, prompt=prompt)
