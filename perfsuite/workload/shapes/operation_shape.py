"""One operation at one shape, with the least that it has to compute and to move.

The operations that are measured by their shapes, and the names of their dimensions.

One convention for all products: ``C[b, m, n] = sum over k of A[b, m, k] B[b, n, k]``, A the F32 activations (m tokens)
and B the stored weights or keys (n of them), row by row; decode's growing dimension is n. ggml's MUL_MAT calls n its
``ne01`` and m its ``ne11``; the kernel catalogue counts as ggml does, with the weights' rows first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import NoReturn

from perfsuite.errors import ShapeError
from perfsuite.workload.ggml_types import GGML_TYPES


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
        return _DIMENSIONS[self]

    @property
    def inner_dimension(self) -> str:
        """The dimension along which rows of B are in memory, in whole blocks of their type."""
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


_F32_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OperationShape:
    """An operation, how its weights are stored, and its sizes; `ShapeError` where no such operation is."""

    operation: Operation
    #: One of `STORED_TYPES`.
    type: str
    #: In the order of the operation's dimensions, each 1 or more.
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse sizes and types that the operation cannot have."""
        names = self.operation.dimensions
        if len(self.sizes) != len(names) or any(size < 1 for size in self.sizes):
            self._refuse(f"expected a size of 1 or more for each of {', '.join(names)}")
        if self.type not in STORED_TYPES:
            self._refuse(f"type {self.type!r} is none of {', '.join(STORED_TYPES)}")
        inner = self.operation.inner_dimension
        if not GGML_TYPES[self.type.upper()].fits(self.of(inner)):
            self._refuse(f"expected {inner} in whole blocks of {block_values(self.type)}, as {self.type} stores them")
        if self.operation is Operation.ATTENTION and self.of("heads") % self.of("kvheads"):
            self._refuse("expected heads to be a multiple of kvheads")

    @classmethod
    def of_sizes(cls, operation: Operation, type: str, sizes: Mapping[str, int]) -> OperationShape:
        if set(sizes) != set(operation.dimensions):
            names, wanted = ", ".join(sizes) or "none", ", ".join(operation.dimensions)
            raise ShapeError(f"{operation.value}: dimensions {names}; expected {wanted}")
        return cls(operation=operation, type=type, sizes=tuple(sizes[name] for name in operation.dimensions))

    @classmethod
    def from_id(cls, text: str) -> OperationShape:
        """Return the shape of an id such as ``gemm/m64-n512-k128/f16``; `ShapeError` where it is none."""
        match = re.fullmatch(r"([a-z]+)/([a-z]+[1-9][0-9]{0,17}(?:-[a-z]+[1-9][0-9]{0,17})*)/(\w+)", text)
        if match is None or match[1] not in {each.value for each in Operation}:
            known = "|".join(each.value for each in Operation)
            raise ShapeError(f"{text}: not a shape; expected {known}/<name><size>-.../<type>")
        sizes = {name: int(size) for name, size in re.findall(r"([a-z]+)(\d+)", match[2])}
        return cls.of_sizes(Operation(match[1]), match[3], sizes)

    @property
    def id(self) -> str:
        """The operation, its sizes and its type, such as ``bmm/b32-m1-n512-k128/f16``."""
        sizes = "-".join(f"{name}{size}" for name, size in zip(self.operation.dimensions, self.sizes, strict=True))
        return f"{self.operation.value}/{sizes}/{self.type}"

    def of(self, dimension: str) -> int:
        return self.sizes[self.operation.dimensions.index(dimension)]

    def with_sizes(self, **sizes: int) -> OperationShape:
        mine = dict(zip(self.operation.dimensions, self.sizes, strict=True))
        return OperationShape.of_sizes(self.operation, self.type, {**mine, **sizes})

    @property
    def flops(self) -> int:
        """FLOPs of one launch, 2 a multiply-add: 2 b m n k, or for attention 4 heads context head.

        The softmax of attention is not counted; it is less than 1 in ``head`` of the rest.
        """
        if self.operation is Operation.ATTENTION:
            return 4 * self.of("heads") * self.of("context") * self.of("head")
        return 2 * prod(self.sizes)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the weights, the keys, or the keys and values."""
        rows, inner = self._stored_rows, self.of(self.operation.inner_dimension)
        return rows * GGML_TYPES[self.type.upper()].row_bytes(inner)

    @property
    def moved_bytes(self) -> int:
        """The least bytes that must move: each operand read once, the output written once; activations are F32."""
        return self.stored_bytes + _F32_BYTES * (self._n_activations + self.n_outputs)

    @property
    def n_outputs(self) -> int:
        if self.operation is Operation.ATTENTION:
            return self.of("heads") * self.of("head")
        return prod(self.sizes) // self.of("k")

    @property
    def _stored_rows(self) -> int:
        if self.operation is Operation.ATTENTION:
            return 2 * self.of("context") * self.of("kvheads")
        return self.of("n") * (self.of("b") if self.operation is Operation.BMM else 1)

    @property
    def _n_activations(self) -> int:
        if self.operation is Operation.ATTENTION:
            return self.of("heads") * self.of("head")
        return prod(self.sizes) // self.of("n")

    def _refuse(self, why: str) -> NoReturn:
        raise ShapeError(f"{self.operation.value} {self.type} {self.sizes}: {why}")


def block_values(type: str) -> int:
    """Return how many values of a stored type make a block, which a row has a whole number of."""
    return GGML_TYPES[type.upper()].block_values
