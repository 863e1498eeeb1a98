"""FLOPs and bytes of each ggml operator from its shapes, by the convention that `ggml_cost` states.

*Source* where a rule names no other: the definition of the operator in ``ggml/src/ggml.c``, and what is computed for it
in ``ggml/src/ggml-cpu/ops.cpp`` and ``unary-ops.cpp``, of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, isqrt, log2, prod

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
#: FLOPs of x / 2 (1 + erf(a x)), of which the error function is 1.
GELU_ERF_FLOPS = 5
#: FLOPs of x / (1 + exp(a x)).
GELU_QUICK_FLOPS = 4
#: FLOPs of 1 / (1 + exp(-x)).
SIGMOID_FLOPS = 4
#: Rounds in which the weights of hyper-connections are normalised; shapes do not show it. *Source*: the paper on
#: manifold-constrained hyper-connections (DeepSeek), 20.
SINKHORN_ROUNDS = 20

#: FLOPs, bytes read of each source, and bytes written, from the output and the sources.
CostRule = Callable[[TensorShape, Sequence[TensorShape]], tuple[int, tuple[int, ...], int]]


def experts_read(n_experts: int, n_used: int, n_tokens: int) -> int:
    """Return how many of `n_experts` a batch reads: the expected number of distinct ones, rounded."""
    return round(distinct_experts(n_experts, n_used, n_tokens))


def distinct_experts(n_experts: int, n_used: int, n_tokens: int) -> float:
    """Return how many experts a batch touches if each token draws its own at random.

    ``E (1 - (1 - u / E)^n)`` for `n` tokens that are each routed to `u` of `E` experts, all equally likely. It is `u`
    for one token, exactly, and never above ``min(E, n u)``. Real routers prefer some experts, so a batch reads fewer;
    which ones is not known from shapes. A token that chooses more experts than there are reads all of them.
    """
    return n_experts * (1.0 - (1.0 - min(n_used, n_experts) / max(1, n_experts)) ** n_tokens)


def bytes_of(sources: Sequence[TensorShape]) -> tuple[int, ...]:
    """Return the stored bytes of each source, which are read whole."""
    return tuple(source.n_bytes for source in sources)


def _first_bytes(sources: Sequence[TensorShape]) -> tuple[int, ...]:
    """Read the first source alone, such as where ggml lists the destination or a shape as a source too."""
    return (sources[0].n_bytes, *(0 for _ in sources[1:]))


def _rows_bytes(of: TensorShape, n_rows: int) -> int:
    return row_bytes(of.type, of.ne[0]) * n_rows


def elementwise(flops_per_element: int) -> CostRule:
    """Return the rule of work on each element of the output; all sources are read."""

    def rule(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
        return flops_per_element * output.n_elements, bytes_of(sources), output.n_bytes

    return rule


def per_source_element(flops_per_element: int) -> CostRule:
    """Return the rule of work on each element of the first source, such as a sum; all sources are read."""

    def rule(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
        return flops_per_element * sources[0].n_elements, bytes_of(sources), output.n_bytes

    return rule


def from_nothing(flops_per_element: int) -> CostRule:
    """Return the rule of what is made out of nothing; a source gives its shape alone."""

    def rule(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
        return flops_per_element * output.n_elements, tuple(0 for _ in sources), output.n_bytes

    return rule


def copy(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """What is copied; ggml lists the destination as a source too, and does not read it."""
    return 0, _first_bytes(sources), output.n_bytes


def product(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """2 k m n for each of the output's matrices; both operands read, the product written."""
    return 2 * sources[0].ne[0] * output.n_elements, bytes_of(sources), output.n_bytes


def outer_product(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """a (m, k), b (n, k): 2 k m n for each of the output's matrices (m, n)."""
    return 2 * sources[0].ne[1] * output.n_elements, bytes_of(sources), output.n_bytes


def routed_product(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """Experts (k, m, E), x (k, u or 1, n), chosen (u, n): 2 k m u n; reads the experts that are expected."""
    experts, chosen = sources[0], sources[2]
    read = experts.n_bytes // max(1, experts.ne[2]) * experts_read(experts.ne[2], *chosen.ne[:2])
    return 2 * experts.ne[0] * output.n_elements, (read, *bytes_of(sources[1:])), output.n_bytes


def routed_bias(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """x (k, u, n), biases (k, E), chosen (u, n): an addition an element; reads the biases that are expected."""
    x, biases, chosen = sources
    read = _rows_bytes(biases, experts_read(biases.ne[1], *chosen.ne[:2]))
    return output.n_elements, (x.n_bytes, read, chosen.n_bytes), output.n_bytes


def hadamard(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """log2(k) additions and a scale for each element of a row of k; the matrix (k, k) stays unread."""
    return (_log2(sources[0].ne[0]) + 1) * output.n_elements, (0, *bytes_of(sources[1:])), output.n_bytes


def gather(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """The rows that are gathered, at their stored size, and the indices."""
    return 0, (_rows_bytes(sources[0], prod(output.ne[1:])), *bytes_of(sources[1:])), output.n_bytes


def scatter(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """The rows that are scattered and their indices; written in the destination's type, which is not read."""
    rows = row_bytes(output.type, sources[0].ne[0]) * prod(sources[0].ne[1:])
    return 0, (*bytes_of(sources[:2]), *(0 for _ in sources[2:])), rows


def sort(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """log2(k) comparisons for each element of a row of k."""
    return _log2(output.ne[0]) * output.n_elements, bytes_of(sources), output.n_bytes


def best(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """A comparison for each element, and log2(k) for each of the k that are kept of a row."""
    return sources[0].n_elements + _log2(output.ne[0]) * output.n_elements, bytes_of(sources), output.n_bytes


def _log2(size: int) -> int:
    return ceil(log2(max(1, size)))


def mean(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """One addition for each element of a row, and a division for the row."""
    return sources[0].n_elements + output.n_elements, bytes_of(sources), output.n_bytes


def accumulated(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """One addition for each element of the second source; the rest of the first is copied."""
    return sources[1].n_elements, bytes_of(sources), output.n_bytes


def triangular_solution(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """A (n, n), B (k, n): row i of k columns takes i products and additions, a difference and a division: n + 1."""
    return (sources[0].ne[0] + 1) * output.n_elements, bytes_of(sources), output.n_bytes


def fused_attention(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """q (dk, n, h), k (dk, T, hk), v (dv, T, hk): 2 h n T (dk + dv) products and a softmax over h n T scores.

    The mask and the sinks, one for each head, are read too. Shapes do not show whether scores have a soft cap, which
    would be 3 FLOPs more for each.
    """
    query, key, value = sources[:3]
    n_scores = query.ne[1] * query.ne[2] * query.ne[3] * key.ne[1]
    flops = 2 * n_scores * (key.ne[0] + value.ne[0]) + SOFTMAX_FLOPS * n_scores
    return flops, bytes_of(sources), output.n_bytes


def index_scores(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """q (d, h, n), k (d, 1, T), w (h, n), mask (T, n): h n T (2 d + 3) and a mask; dot product, ReLU, weighted sum."""
    d, n_heads = sources[0].ne[:2]
    return (n_heads * (2 * d + 3) + 1) * output.n_elements, bytes_of(sources), output.n_bytes


def columns_of_image(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """What is under the kernel at each of its places; of the kernel, the first source, the shape alone is read."""
    return 0, (0, *bytes_of(sources[1:])), output.n_bytes


def convolution(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """Kernel (w, h, c, m): 2 w h c for each element of the output; one kernel for each channel has c = 1."""
    return 2 * prod(sources[0].ne[:3]) * output.n_elements, bytes_of(sources), output.n_bytes


def volume_convolution(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """Kernel (w, h, d, c m), volume (.., c N), output (.., m N): 2 w h d c for each element of the output."""
    kernel, volume = sources
    channels = isqrt(kernel.ne[3] * volume.ne[3] // max(1, output.ne[3]))
    return 2 * prod(kernel.ne[:3]) * channels * output.n_elements, bytes_of(sources), output.n_bytes


def transposed_convolution(n_dimensions: int) -> CostRule:
    """Return the rule of kernel (w.., m, c) on data (l.., c, N): 2 w m c for each place of the data."""

    def rule(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
        kernel, spread = sources[:2]
        places = prod(spread.ne[:n_dimensions]) * prod(spread.ne[n_dimensions + 1 :])
        return 2 * kernel.n_elements * places, bytes_of(sources), output.n_bytes

    return rule
