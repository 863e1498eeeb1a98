"""What a traced operator computes and moves, for the rates of the statistics."""

from __future__ import annotations

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.trace.operators import RecordedOperator
from perfsuite.verdict.said_graph import recorded_cost


def traced_cost(operator: RecordedOperator) -> OpCost | None:
    """Cost an operator by the convention of the expectation; None where it has no rule for it or its types.

    Nor for fused attention: the convention counts the padded cache, of which the engine skips what is masked.
    """
    if operator.op == "FLASH_ATTN_EXT":
        return None
    try:
        return recorded_cost(operator.node)
    except (PerfsuiteError, IndexError, ValueError):  # an operator that is unknown, or whose sources were not read
        return None
