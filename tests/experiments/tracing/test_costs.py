"""Costs of traced operators."""

from __future__ import annotations

from perfsuite.experiments.tracing.costs import traced_cost
from perfsuite.testing.engine_traces import node, tensor
from perfsuite.trace.statistics.traced_operators import traced_operators
from perfsuite.verdict.graph_agreement import recorded_cost
from tests.synthetic_statistics import attention, product


def test_a_product_costs_what_the_convention_says() -> None:
    """2 k m FLOPs, and its weights, input and output moved; the weights are parameters."""
    (operator,) = traced_operators([product("ffn_up", 64, 128)])
    cost = traced_cost(operator)
    assert cost is not None
    assert cost.flops == 2 * 64 * 128
    assert cost.parameter_bytes == 128 * 2 * 34
    assert cost.moved_bytes == cost.parameter_bytes + 4 * (64 + 128)


def test_what_has_no_rule_has_no_cost() -> None:
    """An unknown operator, an unknown type and a missing source cost nothing that is known."""
    unknown = [
        node("SSM_SCAN", tensor("a"), tensor("b")),
        node("ADD", tensor("a"), tensor("b", type="q9_9"), tensor("c")),
        node("FLASH_ATTN_EXT", tensor("a"), tensor("b")),
    ]
    assert [traced_cost(operator) for operator in traced_operators(unknown)] == [None, None, None]


def test_fused_attention_has_no_rate() -> None:
    """Masked positions are skipped, and no trace tells how many of the padded cache they are."""
    (operator,) = traced_operators([attention(256)])
    assert recorded_cost(operator.node).flops > 0
    assert traced_cost(operator) is None
