"""The sizes of ggml's operators that carry a state from token to token, solve, index, mix streams or see windows.

What an operator has no own field for takes the nearest: rows of a state are `n_outer`, groups are `n_kv_heads`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from perfsuite.expectation.graphs.operator import Operator, TensorShape
from perfsuite.expectation.graphs.operator import shape as tensor
from perfsuite.expectation.graphs.request import Batch
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.shape_rules import AloneRule, sized

Alone = tuple[TensorShape, Sequence[TensorShape]]


def convolution_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count channels and the tokens that each sees."""
    channels, n_tokens, n_sequences, _ = operator.output.ne
    return sized(operator, n_inner=channels, n_outer=operator.sources[1].ne[0], n_tokens=n_tokens * n_sequences)


def convolution_alone(of: OperatorShape) -> Alone:
    """Return one sequence of tokens, those before it, and the kernel."""
    channels, width, n = of.n_inner, max(1, of.n_outer), of.n_tokens
    return tensor("f32", channels, n), (tensor("f32", width - 1 + n, channels), tensor("f32", width, channels))


def scan_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count channels, heads, states of a channel, and groups of heads; Mamba's heads have one channel each."""
    state, x, *_, outer, _ = operator.sources[:7]
    size, n_heads, n_tokens, n_sequences = x.ne
    return sized(
        operator,
        n_inner=size,
        n_outer=state.ne[0],
        n_tokens=n_tokens * n_sequences,
        n_heads=n_heads,
        n_kv_heads=outer.ne[1],
    )


def scan_alone(of: OperatorShape) -> Alone:
    """Return one sequence of tokens and its state; the decay is one of each state where heads have one channel."""
    d, states, heads, n = of.n_inner, max(1, of.n_outer), max(1, of.n_heads), of.n_tokens
    groups = tensor("f32", states, max(1, of.n_kv_heads), n)
    state, x = tensor("f32", states, d, heads), tensor("f32", d, heads, n)
    decay = tensor("f32", states if d == 1 else 1, heads)
    output = tensor("f32", x.n_elements + state.n_elements)
    return output, (state, x, tensor("f32", heads, n), decay, groups, groups, tensor("i32", 1))


def state_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the heads that have a state, whose sides are as long as the rows of a head."""
    size, n_heads, n_tokens, _ = operator.sources[0].ne
    return sized(operator, n_inner=size, n_tokens=n_tokens, n_heads=n_heads)


def state_alone(n_rows: int, *, has_bonus: bool = False) -> AloneRule:
    """Return the rule of so many rows of each head and token, where `has_bonus` one row of each head, and the state."""

    def rule(of: OperatorShape) -> Alone:
        size, heads, n = of.n_inner, max(1, of.n_heads), of.n_tokens
        rows, state = (tensor("f32", size, heads, n),) * n_rows, tensor("f32", size * size * heads, 1)
        bonus = (tensor("f32", size, heads),) if has_bonus else ()
        return tensor("f32", size * heads, n + size), (*rows[:3], *bonus, *rows[3:], state)

    return rule


def delta_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count heads of values and of keys, and the gates of a head: one, or one for each row of its state."""
    _, keys, values, gate = operator.sources[:4]
    size, n_heads, n_tokens, n_sequences = values.ne
    return sized(
        operator,
        n_inner=size,
        n_outer=gate.ne[0],
        n_tokens=n_tokens * n_sequences,
        n_heads=n_heads,
        n_kv_heads=keys.ne[1],
    )


def delta_alone(of: OperatorShape) -> Alone:
    """Return one sequence of queries, keys, values, gates and weights, and its state."""
    size, heads, n = of.n_inner, max(1, of.n_heads), of.n_tokens
    keys, values = tensor("f32", size, max(1, of.n_kv_heads), n), tensor("f32", size, heads, n)
    gate, weight = (tensor("f32", width, heads, n) for width in (size if of.n_outer == size else 1, 1))
    return tensor("f32", size * heads, n + size), (keys, keys, values, gate, weight, tensor("f32", size, size, heads))


def solution_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the rows of a matrix, the columns that are solved for, and the matrices."""
    matrix, columns = operator.sources[:2]
    return sized(operator, n_inner=matrix.ne[0], n_outer=columns.ne[0], n_tokens=prod(matrix.ne[2:]))


def solution_alone(of: OperatorShape) -> Alone:
    """Return matrices and columns."""
    n, columns = of.n_inner, tensor("f32", max(1, of.n_outer), of.n_inner, of.n_tokens)
    return columns, (tensor("f32", n, n, of.n_tokens), columns)


def square_alone(of: OperatorShape) -> Alone:
    """Return as many whole square matrices as there are rows for, and the same."""
    squares = tensor("f32", of.n_inner, of.n_inner, max(1, of.n_tokens // of.n_inner))
    return squares, (squares,)


def diagonal_alone(of: OperatorShape) -> Alone:
    """Return square matrices and their diagonals."""
    (squares, _) = square_alone(of)
    return squares, (tensor("f32", of.n_inner, 1, squares.ne[2]),)


def index_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the heads of the index and the positions that they are compared with."""
    query, key = operator.sources[:2]
    size, n_heads, n_tokens, n_streams = query.ne
    n_tokens *= n_streams
    return sized(operator, key.type, n_inner=size, n_outer=key.ne[2], n_tokens=n_tokens, n_heads=n_heads)


def index_alone(of: OperatorShape) -> Alone:
    """Return scores, queries, keys of all positions, weights of the heads, and the mask."""
    size, positions, heads, n = of.n_inner, max(1, of.n_outer), max(1, of.n_heads), of.n_tokens
    key, query = tensor(of.type, size, 1, positions), tensor("f32", size, heads, n)
    return tensor("f32", positions, n), (query, key, tensor("f32", heads, n), tensor("f16", positions, n))


def mixing_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the weights that a token mixes its streams by."""
    ne = operator.output.ne
    return sized(operator, n_inner=ne[0] * ne[1], n_tokens=ne[2])


def mixing_alone(of: OperatorShape) -> Alone:
    """Return the weights of 4 streams, the only number that ggml knows, and what they are made of."""
    return tensor("f32", 4, 4, of.n_tokens), (tensor("f32", 24, of.n_tokens), tensor("f32", 3), tensor("f32", 24))


def joined_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the streams that are joined, and their weights: one of each, or as many as it is wide, which are gates."""
    streams, weights = operator.sources[:2]
    width, n_streams, n_tokens, _ = streams.ne
    n_weights = width if weights.ne[:2] == streams.ne[:2] else 1
    return sized(operator, n_inner=width, n_outer=n_weights, n_tokens=n_tokens, n_heads=n_streams)


def is_gated(of: OperatorShape) -> bool:
    """Whether each element of a stream that is joined has a weight of its own."""
    return of.n_outer > 1


def joined_alone(of: OperatorShape) -> Alone:
    """Return one row of each token, its streams, and their weights."""
    k, heads, n = of.n_inner, max(1, of.n_heads), of.n_tokens
    streams = tensor("f32", k, heads, n)
    return tensor("f32", k, n), (streams, streams if is_gated(of) else tensor("f32", heads, n))


def parted_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the streams, and those that each is mixed of."""
    width, n_streams, n_tokens, _ = operator.output.ne
    n_mixed = n_streams if len(operator.sources) > 3 else 1
    return sized(operator, n_inner=width, n_outer=n_mixed, n_tokens=n_tokens, n_heads=n_streams)


def parted_alone(of: OperatorShape) -> Alone:
    """Return streams, the row that is added to each, the streams before, their weights, and how they are mixed."""
    k, heads, n = of.n_inner, max(1, of.n_heads), of.n_tokens
    streams, weights = tensor("f32", k, heads, n), tensor("f32", heads, n)
    mixing = (tensor("f32", heads, heads, n),) if of.n_outer > 1 else ()
    return streams, (tensor("f32", k, n), streams, weights, *mixing)


def stream_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """The elements of all streams, and as often as each is mixed or gated."""
    elements = float(max(1, of.n_heads) * of.n_inner)
    return (elements, elements * min(of.n_outer, of.n_heads))


def window_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count what is left of each row, and how much of it is one element then."""
    output, source = operator.output, operator.sources[0]
    n_seen = source.n_elements // max(1, output.n_elements)
    return sized(operator, n_inner=output.ne[0], n_tokens=prod(output.ne[1:]), n_used=n_seen)


def window_alone(of: OperatorShape) -> Alone:
    """Return rows, and those whose neighbours are pooled."""
    k, n = of.n_inner, of.n_tokens
    return tensor("f32", k, n), (tensor("f32", k * max(1, of.n_used), n),)


def patch_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count what is under the kernel, the kernel's width, and the places of the kernel."""
    ne = operator.output.ne
    width = operator.sources[0].ne[0]
    return sized(operator, operator.output.type, n_inner=ne[0], n_outer=width, n_tokens=prod(ne[1:]))


def patch_alone(of: OperatorShape) -> Alone:
    """Return what is under a kernel that moves over one row of each channel, the kernel, and these rows."""
    width, n = max(1, of.n_outer), of.n_tokens
    channels = max(1, of.n_inner // width)
    kernel, rows = tensor(of.type, width, channels), tensor("f32", n + width - 1, channels)
    return tensor(of.type, width * channels, n), (kernel, rows)


def convolution_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """Channels, and channels x what each sees."""
    return (float(of.n_inner), float(of.n_inner * max(1, of.n_outer)))


def state_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """The elements of all heads, and of their states: each as long as the head, or as it says itself."""
    elements = float(max(1, of.n_heads) * of.n_inner)
    is_scan = of.op == "SSM_SCAN"
    return (elements, elements * (max(1, of.n_outer) if is_scan else of.n_inner))


def solution_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """Columns x rows, and columns x rows x rows."""
    elements = float(of.n_inner * max(1, of.n_outer))
    return (elements, elements * of.n_inner)


def index_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """Positions x size of a head, and heads x that."""
    elements = float(max(1, of.n_outer) * of.n_inner)
    return (elements, max(1, of.n_heads) * elements)
