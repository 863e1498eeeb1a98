"""The sizes of each ggml operator: read from a graph, made into tensors again, and what its time grows with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from perfsuite.expectation.ggml_rules import distinct_experts
from perfsuite.expectation.graphs.operator import Operator, TensorShape
from perfsuite.expectation.graphs.operator import shape as tensor
from perfsuite.expectation.graphs.request import KV_PADDING, Batch
from perfsuite.expectation.thread_rules import SPLIT_POSITIONS, split_positions
from perfsuite.expectation.timing.operator_shape import SCALED_ROWS, OperatorShape

#: The sizes of an operator of a graph, from it and its batch.
AxesRule = Callable[[Operator, Batch], OperatorShape]
#: The output and the sources of an operator that stands alone.
AloneRule = Callable[[OperatorShape], tuple[TensorShape, Sequence[TensorShape]]]
#: Whole numbers and floats by which an operator that stands alone is told how to work, in the order of its `op_params`.
ParamsRule = Callable[[OperatorShape], Sequence[int | float]]
#: The terms of its time beside the dispatch, from its sizes, the rows of activations and the threads.
FeatureRule = Callable[[OperatorShape, int, int], tuple[float, ...]]


def sized(operator: Operator, type_name: str = "f32", *, n_inner: int, n_tokens: int, **sizes: int) -> OperatorShape:
    """Return the sizes of an operator; of an empty one those of the least that there is."""
    least = {"n_inner": max(1, n_inner), "n_tokens": max(1, n_tokens)}
    return OperatorShape(op=operator.op, type=type_name, **least, **sizes)


def token_rows(operator: Operator, batch: Batch) -> OperatorShape:
    """Take an operator as work on the elements of a token."""
    output, sources = operator.output, operator.sources
    is_scaled = operator.op == "MUL" and len(sources) > 1 and sources[1].ne[0] == 1 < output.ne[0]
    n_rows = max(1, min(batch.n_tokens, prod(output.ne[1:])))  # fewer than tokens where only some give logits
    found = sized(operator, n_inner=output.n_elements // n_rows, n_tokens=n_rows)
    return replace(found, op=SCALED_ROWS) if is_scaled else found


def every_row(operator: Operator, batch: Batch) -> OperatorShape:
    """Take each row for itself; what a norm does between the rows of a tensor is all the same."""
    ne = operator.output.ne
    return sized(operator, n_inner=ne[0], n_tokens=prod(ne[1:]))


def source_rows(operator: Operator, batch: Batch) -> OperatorShape:
    """Take each row that is summed, sorted or searched for itself, and count what is kept of it."""
    ne = operator.sources[0].ne
    return sized(operator, n_inner=ne[0], n_tokens=prod(ne[1:]), n_used=operator.output.ne[0])


def repeated_rows(operator: Operator, batch: Batch) -> OperatorShape:
    """Take each row that is repeated, as often as it is."""
    source = operator.sources[0]
    n_times = operator.output.n_elements // max(1, source.n_elements)
    return sized(operator, n_inner=source.ne[0], n_tokens=prod(source.ne[1:]), n_heads=n_times)


def rows_of_heads(*, heads: int, tokens: int) -> AxesRule:
    """Return the rule of an operator whose heads and tokens are these dimensions of its output.

    Heads of several sequences stand side by side, as if they were one's.
    """

    def rule(operator: Operator, batch: Batch) -> OperatorShape:
        ne = operator.output.ne
        return sized(operator, n_inner=ne[0], n_tokens=ne[tokens], n_heads=ne[heads] * ne[3])

    return rule


def gathered_rows(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the rows that a gather takes out of its table."""
    return _moved_rows(operator, operator.sources[0].type, operator.output)


def stored_rows(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the rows that are put into the cache."""
    return _moved_rows(operator, operator.output.type, operator.sources[0])


def _moved_rows(operator: Operator, type_name: str, rows: TensorShape) -> OperatorShape:
    return sized(operator, type_name, n_inner=rows.ne[0], n_outer=1, n_tokens=prod(rows.ne[1:]))


def product_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Keep a product with parameters apart from one of attention, which has heads."""
    weights, x = operator.sources[:2]
    k, m = weights.ne[:2]
    if operator.cost.parameter_bytes:  # a matrix for each head, as in latent attention, is one with as many rows
        n_outer, n_tokens = m * prod(weights.ne[2:]), prod(x.ne[1:]) // prod(weights.ne[2:])
        return sized(operator, weights.type, n_inner=k, n_outer=n_outer, n_tokens=n_tokens)
    return sized(
        operator,
        weights.type,
        n_inner=k,
        n_outer=m,
        n_tokens=x.ne[1],
        n_heads=prod(x.ne[2:]),
        n_kv_heads=prod(weights.ne[2:]),
    )


def expert_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the experts, and those of a token."""
    matrices, (_, n_used, n_tokens, _) = operator.sources[0], operator.output.ne
    k, m, n_experts = matrices.ne[:3]
    return sized(
        operator,
        matrices.type,
        n_inner=k,
        n_outer=m,
        n_tokens=n_tokens,
        n_experts=n_experts,
        n_used=n_used,
    )


def bias_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the biases, one for each expert, and those that a token's rows are given."""
    k, n_used, n_tokens, _ = operator.output.ne
    return sized(operator, n_inner=k, n_tokens=n_tokens, n_experts=operator.sources[1].ne[1], n_used=n_used)


def attention_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the positions that are in use: the engine skips masked ones, and a sliding window holds no more.

    Heads of several sequences stand side by side, as if they were one's.
    """
    query, key, value = operator.sources[:3]
    n_tokens, n_kv = query.ne[1], key.ne[1]
    return sized(
        operator,
        key.type,
        n_inner=(key.ne[0] + value.ne[0]) // 2,
        n_tokens=n_tokens,
        n_heads=query.ne[2] * query.ne[3],
        n_kv_heads=key.ne[2] * key.ne[3],
        n_past=max(0, min(batch.n_used, n_kv) - n_tokens),
    )


def product_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return a matrix, or one for each head of the cache, times the rows of all heads."""
    k, m, n, heads = of.n_inner, of.n_outer, of.n_tokens, max(1, of.n_heads)
    weights = tensor(of.type, k, m, max(1, of.n_kv_heads))
    return tensor("f32", m, n, heads), (weights, tensor("f32", k, n, heads))


def experts_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return all experts, one row for each token, and the choices."""
    k, m, n = of.n_inner, of.n_outer, of.n_tokens
    experts, chosen = tensor(of.type, k, m, of.n_experts), tensor("i32", of.n_used, n)
    return tensor("f32", m, of.n_used, n), (experts, tensor("f32", k, 1, n), chosen)


def biases_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return the rows of each token's experts, the biases of all experts, and the choices."""
    k, n_used, n = of.n_inner, max(1, of.n_used), of.n_tokens
    rows, biases = tensor("f32", k, n_used, n), tensor("f32", k, max(1, of.n_experts))
    return rows, (rows, biases, tensor("i32", n_used, n))


def attention_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return queries, keys, values as wide as they, and the mask."""
    k, n, heads, n_kv = of.n_inner, of.n_tokens, max(1, of.n_heads), of.n_past + of.n_tokens
    cache = tensor(of.type, k, n_kv, of.n_kv_heads)
    return tensor("f32", k, heads, n), (tensor("f32", k, n, heads), cache, cache, tensor("f16", n_kv, n))


def gather_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return a table and the indices of its rows."""
    return tensor("f32", of.n_inner, of.n_tokens), (_stored(of), tensor("i32", of.n_tokens))


def scatter_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return rows and the indices that they are put at."""
    return _stored(of), (tensor("f32", of.n_inner, of.n_tokens), tensor("i32", of.n_tokens))


def _stored(of: OperatorShape) -> TensorShape:
    return tensor(of.type, of.n_inner, max(1, of.n_outer))


def rows_with(second: Callable[[OperatorShape], Sequence[TensorShape]] | None = None) -> AloneRule:
    """Return the rule of work on rows, beside which stand further operands: rows alike unless others are given."""

    def rule(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
        row = tensor("f32", of.n_inner, max(1, of.n_heads), of.n_tokens)
        return row, (row, *((row,) if second is None else second(of)))

    return rule


def unary_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return rows that are made of rows alike."""
    return rows_with(lambda of: ())(of)


def made_of_rows(output: Callable[[OperatorShape], TensorShape]) -> AloneRule:
    """Return the rule of what is summed, sorted or searched in rows."""

    def rule(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
        return output(of), (tensor("f32", of.n_inner, of.n_tokens),)

    return rule


def repeated_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return rows, each so many times, and the rows."""
    k, n = of.n_inner, of.n_tokens
    return tensor("f32", k, max(1, of.n_heads), n), (tensor("f32", k, 1, n),)


def halves_alone(of: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
    """Return rows and the two halves that they are joined from."""
    k, heads = of.n_inner, max(1, of.n_heads)
    row, first, rest = (tensor("f32", width, heads, of.n_tokens) for width in (k, k // 2, k - k // 2))
    return row, (first, rest)


def product_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """k m (weights streamed and multiplied), k (activations quantised), m (output); heads x k x m, heads x m."""
    k, m = float(of.n_inner), float(of.n_outer)
    return (of.n_heads * k * m, of.n_heads * m) if of.n_heads else (k * m, k, m)


def expert_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """k m for each distinct expert that is read, and for each expert of a token."""
    area = float(of.n_inner * of.n_outer)
    return (area * distinct_experts(of.n_experts, of.n_used, n_tokens), area * of.n_used)


#: Elements of a row of halves that the engine takes at once where its vectors are the longest: two of 512 bits.
#: *Source*: ``GGML_F16_STEP`` in ``ggml/src/ggml-cpu/simd-mappings.h`` of llama.cpp.
_VECTOR_ELEMENTS = 64


def attention_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """Heads, heads x positions, heads x positions x size of a head, and heads of the cache x positions x size.

    The last is heads x positions x what is left of a head beside whole vectors, which takes an element at a time.
    """
    positions = _positions(of, n_tokens, n_threads)
    heads = float(of.n_heads)
    width = positions * of.n_inner
    left_over = heads * positions * (of.n_inner % _VECTOR_ELEMENTS)
    return (heads, heads * positions, heads * width, of.n_kv_heads * width, left_over)


def _positions(of: OperatorShape, n_tokens: int, n_threads: int) -> float:
    """Return the positions that a query sees on average, those of idle threads included."""
    if n_tokens > 1:
        return of.n_past + (n_tokens + 1) / 2
    n_visible = of.n_past + 1
    n_kv = -(-n_visible // KV_PADDING) * KV_PADDING
    if n_kv < SPLIT_POSITIONS or of.type not in ("f16", "f32"):
        return float(n_visible)
    return float(split_positions(n_visible, n_kv, n_threads))


def head_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """The elements over all heads."""
    return (float(max(1, of.n_heads) * of.n_inner),)


def chosen_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """The elements over all that a token chose."""
    return (float(max(1, of.n_used) * of.n_inner),)


def angle_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """The angles of a row, and its elements over all heads."""
    return (float(of.n_inner), float(of.n_heads * of.n_inner))


def row_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """The elements of a row, and their power of 1.5, by which rows of many bytes leave the caches."""
    return (float(of.n_inner), float(of.n_inner) ** 1.5)
