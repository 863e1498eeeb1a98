"""The kinds by which the engine's operators are reported: the keys of `PassCost.by_operator`."""

from __future__ import annotations

from perfsuite.expectation.graph import Operator
from perfsuite.expectation.op_rules import PRODUCTS, rule_of


def operator_kind(operator: Operator) -> str:
    """Return the kind of an operator, by its row in the table and its role.

    Products with a parameter are ``gemm`` (``lora`` where it is an adapter's), others ``bmm``; the gather of the
    embeddings is ``embedding``, any other ``gather``; flash attention, which holds its products and its softmax, is
    ``attention``.
    """
    if operator.op in PRODUCTS:
        if operator.role.endswith(("_lora_a", "_lora_b")):
            return "lora"
        return "gemm" if operator.cost.parameter_bytes else "bmm"
    return "embedding" if operator.role == "embd" else rule_of(operator.op).kind
