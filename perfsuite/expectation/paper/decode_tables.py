"""Tables 7 and 9: what a decode step of Llama2-7B computes and moves, and how that grows over 2000 tokens."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.paper.passes import decode_pass
from perfsuite.expectation.paper.rotary import RopeReach
from perfsuite.expectation.paper.table_row import GIB, GIGA, PROMPTS, TableRow, llama2_7b, table_rows
from perfsuite.workload.variant import find_variant, variant_names

#: Tokens that Table 9 generates.
N_GENERATED = 2000


def decode_gib(variant: str, n_past: int, rope: RopeReach = RopeReach.WHOLE_TABLE) -> float:
    """GiB that one step reads and writes after `n_past` positions."""
    return decode_pass(llama2_7b(), find_variant(variant), n_past, rope=rope).total.moved_bytes / GIB


def table_7() -> Iterator[TableRow]:
    """Operations in 1e9 and GiB read and written in the first step after a prompt."""
    for prompt in PROMPTS:
        for variant in variant_names():
            total = decode_pass(llama2_7b(), find_variant(variant), prompt).total
            values = {"gops": total.flops / GIGA, "mem_gib": total.moved_bytes / GIB}
            yield from table_rows(7, values, prompt=prompt, variant=variant)


def table_9() -> Iterator[TableRow]:
    """GiB of the first and of the 2000th step, and their ratio, with RoPE for the token alone."""
    for prompt in PROMPTS:
        for variant in variant_names():
            first = decode_gib(variant, prompt, RopeReach.PER_TOKEN)
            last = decode_gib(variant, prompt + N_GENERATED - 1, RopeReach.PER_TOKEN)
            values = {"first_gib": first, "last_gib": last, "ratio": last / first}
            yield from table_rows(9, values, prompt=prompt, variant=variant)
