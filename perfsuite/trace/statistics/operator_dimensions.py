"""The dimensions M x N x K x H by which the time of an operator is told.

    product of matrices     M rows of the weights, N columns, K elements of a row, H matrices (heads)
    product with experts    M rows of an expert, N rows of activations (tokens x experts of a token), K, H = 1
    fused attention         M positions, N queries, K elements of a head, H heads
    softmax of scores       M positions, N queries, K = 1, H heads
    all others              M x N x H elements of the output, K = 1

*Source*: the dimensions by which ProfInfer's ProfStat plots an operator's time, M x N x K x H.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from perfsuite.trace.operators import RecordedOperator


@dataclass(frozen=True, slots=True, order=True)
class Dimensions:
    """M x N x K x H of one operator."""

    m: int
    n: int
    k: int
    h: int

    @property
    def work(self) -> int:
        """Return M N K H: multiply-accumulates of a product, elements of most others."""
        return self.m * self.n * self.k * self.h

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}x{self.h}"


def dimensions_of(operator: RecordedOperator) -> Dimensions:
    """Return the dimensions of an operator."""
    output, sources = operator.node.tensor.ne, operator.node.sources
    if operator.op == "MUL_MAT" and sources:
        return Dimensions(output[0], output[1], sources[0].ne[0], output[2] * output[3])
    if operator.op == "MUL_MAT_ID" and sources:
        return Dimensions(output[0], prod(output[1:]), sources[0].ne[0], 1)
    if operator.op == "FLASH_ATTN_EXT" and len(sources) > 1:
        query, key = sources[0].ne, sources[1].ne
        return Dimensions(key[1], query[1], query[0], query[2] * query[3])
    return Dimensions(output[0], output[1], 1, output[2] * output[3])


def stored_type(operator: RecordedOperator) -> str:
    """Return the type of what an operator mostly reads: the weights, or the keys of fused attention."""
    place = 1 if operator.op == "FLASH_ATTN_EXT" else 0
    sources = operator.node.sources
    return (sources[place] if len(sources) > place else operator.node.tensor).type.lower()
