"""The kinds of operators by which a pass is reported, and the list of them that a part of a layer is made of."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from perfsuite.expectation.op_cost import OpCost


class OperatorKey(str, Enum):
    """Kinds of operators; the value is the key of `PassCost.by_operator`."""

    EMBEDDING = "embedding"
    NORM = "norm"
    GEMM = "gemm"
    #: Operations that int4 weights and quantised keys cost before they are multiplied.
    DEQUANTIZE = "dequantize"
    LORA = "lora"
    ROPE = "rope"
    #: The scale of the queries, the residuals and the product of gate and up.
    ELEMENTWISE = "elementwise"
    ACTIVATION = "activation"
    #: Scores and mix, with the operands that they read.
    BMM = "bmm"
    SOFTMAX = "softmax"
    #: What enters the KV cache, and earlier positions read from it.
    KV_CACHE = "kv_cache"


#: Operators in order of use.
Operators: TypeAlias = Iterator[tuple[OperatorKey, OpCost]]
