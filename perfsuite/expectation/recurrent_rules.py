"""FLOPs and bytes of the operators that carry a state from token to token, and of those that mix streams of residuals.

Each output holds what a token gives, and behind it the states of the sequences.

*Source*: ``ggml_compute_forward_ssm_conv_f32``, ``_ssm_scan_f32``, ``_rwkv_wkv6_f32``, ``_rwkv_wkv7_f32``,
``_gla_f32``, ``_gated_delta_net_one_chunk`` and ``_dsv4_hc_*_f32`` in ``ggml/src/ggml-cpu/ops.cpp`` of
llama-cpp-python 0.3.36, by the convention that `ggml_cost` states.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.expectation.ggml_rules import SIGMOID_FLOPS, SINKHORN_ROUNDS, CostRule, bytes_of
from perfsuite.expectation.graphs.operator import TensorShape

#: FLOPs of log(1 + exp(x)) with the comparison that large x are spared it by.
SOFTPLUS_FLOPS = 4


def short_convolution(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """x (k - 1 + n, d), kernel (k, d): 2 k for each of the d n elements of the output."""
    return 2 * sources[1].ne[0] * output.n_elements, bytes_of(sources), output.n_bytes


def state_scan(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """s (N, d, h, S), x (d, h, n), dt (h, n), A (1 or N, h), B and C (N, g, n), ids: a selective state space.

    For each token, head and channel 1 + 5 N: x dt; s = s a + B (x dt), y = C s. A decay of the head alone, of Mamba-2,
    adds exp(dt A) for each head, that of Mamba the same for each state: 2. dt goes through softplus. The states of the
    sequences that `ids` names are read, of however many there are.
    """
    state, x, dt, decay, *_, ids = sources
    flops = (1 + 5 * state.ne[0]) * x.n_elements + SOFTPLUS_FLOPS * dt.n_elements
    flops += 2 * (dt.n_elements if decay.ne[0] == 1 else state.ne[0] * x.n_elements)
    read = state.n_bytes // max(1, state.ne[3]) * ids.n_elements
    return flops, (read, *bytes_of(sources[1:])), output.n_bytes


def linear_attention(flops_per_state: int, flops_per_element: int = 0) -> CostRule:
    """Return the rule of a state (d, d) for each head: so many FLOPs for each element of it and of a token's row.

    RWKV-6: k v, its bonus added to the state, r times that summed, decay and sum of the state: 7.
    RWKV-7: a s summed, k v, three terms of the state summed, r times the state summed: 9.
    Gated linear attention: k v, decay and sum of the state, q times the state summed: 5, and q is scaled.
    """

    def rule(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
        rows = sources[0]
        return (flops_per_state * rows.ne[0] + flops_per_element) * rows.n_elements, bytes_of(sources), output.n_bytes

    return rule


def delta_net(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """q, k (d, hk, n), v (d, h, n), g (1 or d, h, n), beta (1, h, n), state (d, d, h): 7 d + 3 an element of v.

    Decay of the state: 1; s k: 2; s + k (v - s k) beta: 2 and, an element, 2; s q: 2 and a scale. And exp(g).
    """
    values, gate = sources[2:4]
    return (7 * values.ne[0] + 3) * values.n_elements + gate.n_elements, bytes_of(sources), output.n_bytes


def streams_mixing(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """Mixes ((2 + h) h, n), scale, base: softmax of h x h weights a token, then rows and columns normalised in turn.

    Scale, base, maximum, difference, exponential, sum, division, offset: 8; each normalisation, of which there is one
    less than two a round: 2.
    """
    return (8 + 2 * (2 * SINKHORN_ROUNDS - 1)) * output.n_elements, bytes_of(sources), output.n_bytes


def streams_joined(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """Streams (k, h, n), weights (h, n): a weighted sum, 2 an element; weights (k, h, n) go through a sigmoid."""
    streams, weights = sources
    is_gated = weights.ne[:3] == streams.ne[:3]
    flops = (2 + SIGMOID_FLOPS) * streams.n_elements + output.n_elements if is_gated else 2 * streams.n_elements
    return flops, bytes_of(sources), output.n_bytes


def streams_parted(output: TensorShape, sources: Sequence[TensorShape]) -> tuple[int, tuple[int, ...], int]:
    """x (k, n), streams (k, h, n), weights (h, n), mixing (h, h, n) or none: x w + mixing streams, 1 + 2 h or 2."""
    per_element = 1 + 2 * output.ne[1] if len(sources) > 3 else 2
    return per_element * output.n_elements, bytes_of(sources), output.n_bytes
