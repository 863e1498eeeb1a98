"""What one ggml operator costs: FLOPs and bytes by one written convention, from shapes and types alone.

The convention, the same for the analytical graph and for a recorded one:

* 1 multiply-accumulate is 2 FLOPs; an exponential, a division and a square root are 1 each.
* Every tensor that an operator reads or writes is counted once, whole, at its stored size (quantised weights with
  their scales). Views, reshapes, permutations and transpositions cost nothing.
* A gather or scatter moves only the rows that it touches, and its indices.
* Attention works on the KV cache as the engine pads it (a multiple of 256 positions), masked positions included.
* An operator that the engine computes together with its predecessor keeps its FLOPs; the tensor between the two does
  not move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from perfsuite.errors import ArchitectureError
from perfsuite.workload.ggml_types import GGML_TYPES

#: FLOPs of an element of a norm without its weight: square, add, scale. *Source*: LIFE's 4 h with the weight's product.
NORM_FLOPS = 3
#: FLOPs of an element under rotary embedding. *Source*: LIFE, 3 h.
ROPE_FLOPS = 3
#: FLOPs of a score in softmax: scale, mask, maximum, exponential, sum, division. *Source*: LIFE, 6 a score.
SOFTMAX_FLOPS = 6
#: FLOPs of x / (1 + exp(-x)) times the other half of the gate.
SWIGLU_FLOPS = 5

Shape = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorShape:
    """A tensor as a cost sees it: its ggml type in lower case and its dimensions, innermost first."""

    type: str
    ne: Shape

    @property
    def n_elements(self) -> int:
        """Product of the dimensions."""
        return prod(self.ne)

    @property
    def n_bytes(self) -> int:
        """Stored size in bytes, packed."""
        return row_bytes(self.type, self.ne[0]) * prod(self.ne[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCost:
    """What an operator must compute and move."""

    flops: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    #: The part of `read_bytes` that is parameters of the model.
    parameter_bytes: int = 0
    n_dispatches: int = 1

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    def __add__(self, other: OpCost) -> OpCost:
        return OpCost(
            flops=self.flops + other.flops,
            read_bytes=self.read_bytes + other.read_bytes,
            written_bytes=self.written_bytes + other.written_bytes,
            parameter_bytes=self.parameter_bytes + other.parameter_bytes,
            n_dispatches=self.n_dispatches + other.n_dispatches,
        )


NO_COST = OpCost(n_dispatches=0)


def row_bytes(type_name: str, n_elements: int) -> int:
    """Return the stored bytes of a row of `n_elements` of a ggml type, such as 1.0625 bytes an element for Q8_0."""
    kind = GGML_TYPES.get(type_name.upper())
    if kind is None:
        raise ArchitectureError(f"'{type_name}' is no ggml type")
    return kind.row_bytes(n_elements)


def cost_of(op: str, output: TensorShape, sources: Sequence[TensorShape], *, is_weight: bool = False) -> OpCost:
    """Cost one ggml operator.

    Parameters
    ----------
    op
        The operator as ``ggml_op_desc`` spells it; ``RMS_NORM+MUL`` for the fused pair.
    output, sources
        Shapes as ggml has them: a matrix product of ``(k, m)`` and ``(k, n)`` gives ``(m, n)``.
    is_weight
        Whether the first source is a parameter of the model.

    Raises
    ------
    ArchitectureError
        The convention has no rule for the operator.
    """
    rule = _RULES.get(op)
    if rule is None:
        raise ArchitectureError(f"no cost is known for the operator {op}; known are {', '.join(sorted(_RULES))}")
    flops, read, written = rule(output, sources)
    weight_bytes = min(read, _weight_bytes(op, output, sources)) if is_weight else 0
    return OpCost(flops=flops, read_bytes=read, written_bytes=written, parameter_bytes=weight_bytes)


_Rule = Callable[[TensorShape, Sequence[TensorShape]], tuple[int, int, int]]


def _weight_bytes(op: str, output: TensorShape, sources: Sequence[TensorShape]) -> int:
    if op == "GET_ROWS":
        return row_bytes(sources[0].type, sources[0].ne[0]) * prod(output.ne[1:])
    if op in ("MUL", "ADD", "RMS_NORM+MUL"):
        return sources[1].n_bytes
    return sources[0].n_bytes


def _all_bytes(sources: Sequence[TensorShape]) -> int:
    return sum(source.n_bytes for source in sources)


def _mul_mat(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """2 k m n for each of the output's matrices; both operands read, the product written."""
    return 2 * sources[0].ne[0] * output.n_elements, _all_bytes(sources[:2]), output.n_bytes


def _get_rows(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """The rows that are gathered, at their stored size, and the indices."""
    rows = row_bytes(sources[0].type, sources[0].ne[0]) * prod(output.ne[1:])
    return 0, rows + sources[1].n_bytes, output.n_bytes


def _set_rows(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """The rows that are scattered and their indices; written in the destination's type."""
    rows = row_bytes(output.type, sources[0].ne[0]) * prod(sources[0].ne[1:])
    return 0, _all_bytes(sources[:2]), rows


def _elementwise(flops_per_element: int) -> _Rule:
    def rule(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
        return flops_per_element * output.n_elements, _all_bytes(sources), output.n_bytes

    return rule


def _flash_attn(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """q (dk, n, h), k (dk, T, hk), v (dv, T, hk): 2 h n T (dk + dv) products and a softmax over h n T scores."""
    query, key, value = sources[:3]
    n_scores = query.ne[1] * query.ne[2] * query.ne[3] * key.ne[1]
    flops = 2 * n_scores * (key.ne[0] + value.ne[0]) + SOFTMAX_FLOPS * n_scores
    return flops, _all_bytes(sources), output.n_bytes


_RULES: dict[str, _Rule] = {
    "MUL_MAT": _mul_mat,
    "GET_ROWS": _get_rows,
    "SET_ROWS": _set_rows,
    "RMS_NORM": _elementwise(NORM_FLOPS),
    "RMS_NORM+MUL": _elementwise(NORM_FLOPS + 1),
    "ROPE": _elementwise(ROPE_FLOPS),
    "ADD": _elementwise(1),
    "MUL": _elementwise(1),
    "SWIGLU": _elementwise(SWIGLU_FLOPS),
    "SOFT_MAX": _elementwise(SOFTMAX_FLOPS),
    "CONT": _elementwise(0),
    "CPY": _elementwise(0),
    "FLASH_ATTN_EXT": _flash_attn,
}
