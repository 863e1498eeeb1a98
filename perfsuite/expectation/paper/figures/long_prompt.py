"""What Figures 4 to 6 are about: one long prompt of Llama2-7B, under two variants."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.table_row import llama2_7b
from perfsuite.workload.variant import find_variant

#: *Source*: LIFE, Fig. 4 and 6.
N_PROMPT = 4096
VARIANTS = ("bf16-int4", "bf16-int4-kv4")


def long_prompt(variant: str, chunk: int | None = None) -> OpCost:
    """Cost the prompt, at once or in chunks."""
    return prefill_pass(llama2_7b(), find_variant(variant), N_PROMPT, chunk=chunk).total
