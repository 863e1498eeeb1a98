"""The operations that are measured by their shapes, and the names of their dimensions.

One convention for all products: ``C[b, m, n] = sum over k of A[b, m, k] B[b, n, k]``, A the F32 activations (m tokens)
and B the stored weights or keys (n of them), row by row; decode's growing dimension is n. ggml's MUL_MAT calls n its
``ne01`` and m its ``ne11``; the kernel catalogue counts as ggml does, with the weights' rows first.
"""

from __future__ import annotations

from enum import Enum


class Operation(str, Enum):
    """An operation, by the name that the command line knows."""

    #: Weights times several rows of activations.
    GEMM = "gemm"
    #: As many products as there are heads: scores of attention over a growing context.
    BMM = "bmm"
    #: Weights times one row of activations.
    GEMV = "gemv"
    #: One query token against a cache: softmax(q K^T / sqrt(head)) V, by heads that share KV heads.
    ATTENTION = "attention"

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of its dimensions in the order of a shape's id."""
        return _DIMENSIONS[self]

    @property
    def inner_dimension(self) -> str:
        """The dimension along which rows of B lie in memory, in whole blocks of their type."""
        return "head" if self is Operation.ATTENTION else "k"

    @property
    def growing_dimension(self) -> str:
        """The dimension that a sweep runs over by default; that of the context, where there is one."""
        return "context" if self is Operation.ATTENTION else "n"


_DIMENSIONS = {
    Operation.GEMM: ("m", "n", "k"),
    Operation.BMM: ("b", "m", "n", "k"),
    Operation.GEMV: ("n", "k"),
    Operation.ATTENTION: ("heads", "kvheads", "head", "context"),
}

#: How B may be stored, in the order from wide to narrow.
STORED_TYPES = ("f32", "f16", "q8_0", "q4_k", "q4_0")
