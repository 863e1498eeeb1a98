"""FLOPs and bytes of each ggml operator from its shapes, by the convention that `ggml_cost` states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log2, prod

from perfsuite.expectation.graphs.operator import TensorShape, row_bytes

#: FLOPs of an element of a norm without its weight: square, add, scale. *Source*: LIFE's 4 h with the weight's product.
NORM_FLOPS = 3
#: FLOPs of an element under rotary embedding. *Source*: LIFE, 3 h.
ROPE_FLOPS = 3
#: FLOPs of a score in softmax: scale, mask, maximum, exponential, sum, division. *Source*: LIFE, 6 a score.
SOFTMAX_FLOPS = 6
#: FLOPs of an element of a layer norm without weight and bias: mean, difference, square, sum, scale.
LAYER_NORM_FLOPS = 5
#: FLOPs of x / (1 + exp(-x)).
SILU_FLOPS = 4
#: FLOPs of x / 2 (1 + tanh(a x (1 + b x x))), the approximation that ggml's GELU uses.
GELU_FLOPS = 9

#: FLOPs, bytes read and bytes written, from the output and the sources.
CostRule = Callable[[TensorShape, Sequence[TensorShape]], tuple[int, int, int]]
#: Bytes of the source that can be a parameter, from the same.
WeightRule = Callable[[TensorShape, Sequence[TensorShape]], int]


def experts_read(n_experts: int, n_used: int, n_tokens: int) -> int:
    """Return how many of `n_experts` a batch reads: the expected number of distinct ones, rounded."""
    return round(distinct_experts(n_experts, n_used, n_tokens))


def distinct_experts(n_experts: int, n_used: int, n_tokens: int) -> float:
    """Return how many experts a batch touches if each token draws its own at random.

    ``E (1 - (1 - u / E)^n)`` for `n` tokens that are each routed to `u` of `E` experts, all equally likely. It is `u`
    for one token, exactly, and never above ``min(E, n u)``. Real routers prefer some experts, so a batch reads fewer;
    which ones is not known from shapes. A token that chooses more experts than there are reads all of them.
    """
    return n_experts * (1.0 - (1.0 - min(n_used, n_experts) / n_experts) ** n_tokens)


def _all_bytes(sources: Sequence[TensorShape]) -> int:
    return sum(source.n_bytes for source in sources)


def first_bytes(output: TensorShape, sources: Sequence[TensorShape]) -> int:
    """Return the bytes of a weight that stands in front."""
    return sources[0].n_bytes


def second_bytes(output: TensorShape, sources: Sequence[TensorShape]) -> int:
    """Return the bytes of a weight that stands second."""
    return sources[1].n_bytes


def gathered_bytes(output: TensorShape, sources: Sequence[TensorShape]) -> int:
    """Return the stored bytes of the rows that a gather reads from its first source."""
    return row_bytes(sources[0].type, sources[0].ne[0]) * prod(output.ne[1:])


def expert_bytes(output: TensorShape, sources: Sequence[TensorShape]) -> int:
    """Return the bytes of the expert matrices, the first source, that the choices, the third, make a batch read."""
    experts, _, chosen = sources[:3]
    n_used, n_tokens = chosen.ne[:2]
    return experts.n_bytes // experts.ne[2] * experts_read(experts.ne[2], n_used, n_tokens)


def elementwise(flops_per_element: int) -> CostRule:
    """Return the rule of work on each element of the output; all sources are read."""

    def rule(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
        return flops_per_element * output.n_elements, _all_bytes(sources), output.n_bytes

    return rule


def product(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """2 k m n for each of the output's matrices; both operands read, the product written."""
    return 2 * sources[0].ne[0] * output.n_elements, _all_bytes(sources[:2]), output.n_bytes


def routed_product(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """Experts (k, m, E), x (k, u or 1, n), chosen (u, n): 2 k m u n; reads the experts that are to be expected."""
    flops = 2 * sources[0].ne[0] * output.n_elements
    return flops, expert_bytes(output, sources) + _all_bytes(sources[1:3]), output.n_bytes


def hadamard(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """log2(k) additions and a scale for each element of a row of k; the matrix (k, k) stays unread.

    *Source*: ``ggml_compute_forward_fwht`` in ``ggml/src/ggml-cpu/ops.cpp`` of llama-cpp-python 0.3.36.
    """
    return (ceil(log2(sources[0].ne[0])) + 1) * output.n_elements, sources[1].n_bytes, output.n_bytes


def gather(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """The rows that are gathered, at their stored size, and the indices."""
    return 0, gathered_bytes(output, sources) + sources[1].n_bytes, output.n_bytes


def scatter(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """The rows that are scattered and their indices; written in the destination's type."""
    rows = row_bytes(output.type, sources[0].ne[0]) * prod(sources[0].ne[1:])
    return 0, _all_bytes(sources[:2]), rows


def copy(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """What is copied; ggml lists the destination as a source too, and does not read it."""
    return 0, sources[0].n_bytes, output.n_bytes


def sort(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """log2(k) comparisons for each element of a row of k."""
    return ceil(log2(output.ne[0])) * output.n_elements, sources[0].n_bytes, output.n_bytes


def sum_rows(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """One addition for each element that is summed."""
    return sources[0].n_elements, sources[0].n_bytes, output.n_bytes


def fused_attention(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, int, int]:
    """q (dk, n, h), k (dk, T, hk), v (dv, T, hk): 2 h n T (dk + dv) products and a softmax over h n T scores."""
    query, key, value = sources[:3]
    n_scores = query.ne[1] * query.ne[2] * query.ne[3] * key.ne[1]
    flops = 2 * n_scores * (key.ne[0] + value.ne[0]) + SOFTMAX_FLOPS * n_scores
    return flops, _all_bytes(sources), output.n_bytes
