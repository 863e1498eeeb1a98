"""The rows of ggml's operators that carry a state from token to token, mix streams of residuals, or see windows.

Each output holds what a token gives, and behind it the states of the sequences. What an operator has no own field of
sizes for takes the nearest: rows of a state are `n_outer`, groups are `n_kv_heads`.

*Source*: ``ggml_compute_forward_ssm_conv_f32``, ``_ssm_scan_f32``, ``_rwkv_wkv6_f32``, ``_rwkv_wkv7_f32``,
``_gla_f32``, ``_gated_delta_net_one_chunk`` and ``_dsv4_hc_*_f32`` in ``ggml/src/ggml-cpu/ops.cpp`` of
llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod

from perfsuite.expectation.graphs.operator import Batch, Operator, TensorShape, shape
from perfsuite.expectation.op_rule import (
    ELEMENTS,
    ON_ONE_THREAD,
    THIRD_DIMENSION,
    AloneRule,
    CountRule,
    OpRule,
    Sources,
    all_read,
    chosen_terms,
    f32,
    first_unread,
    i32,
    params,
    per_element,
    per_source_element,
    sized,
)
from perfsuite.expectation.thread_rules import by_heads_and_sequences, by_rows
from perfsuite.expectation.timing.operator_shape import OperatorShape

#: FLOPs of log(1 + exp(x)) with the comparison that large x are spared it by.
SOFTPLUS_FLOPS = 4
#: FLOPs of 1 / (1 + exp(-x)).
SIGMOID_FLOPS = 4
#: Rounds in which the weights of hyper-connections are normalised; shapes do not show it. *Source*: the paper on
#: manifold-constrained hyper-connections (DeepSeek), 20.
SINKHORN_ROUNDS = 20

_EPSILON = 1e-6


def _scan_flops(_: TensorShape, sources: Sources) -> int:
    """s (N, d, h, S), x (d, h, n), dt (h, n), A (1 or N, h), B and C (N, g, n), ids: a selective state space.

    For each token, head and channel 1 + 5 N: x dt; s = s a + B (x dt), y = C s. A decay of the head alone, of Mamba-2,
    adds exp(dt A) for each head, that of Mamba the same for each state: 2. dt goes through softplus.
    """
    state, x, dt, decay = sources[:4]
    flops = (1 + 5 * state.ne[0]) * x.n_elements + SOFTPLUS_FLOPS * dt.n_elements
    return flops + 2 * (dt.n_elements if decay.ne[0] == 1 else state.ne[0] * x.n_elements)


def _scan_reads(output: TensorShape, sources: Sources) -> tuple[int, ...]:
    """The states of the sequences that the last source names are read, of however many there are."""
    state = sources[0]
    return (state.n_bytes // max(1, state.ne[3]) * sources[-1].n_elements, *all_read(output, sources[1:]))


def _scan_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count channels, heads, states of a channel, and groups of heads; Mamba's heads have one channel each."""
    state, x, *_, outer, _ = operator.sources[:7]
    n_tokens = x.ne[2] * x.ne[3]
    sizes = {"n_outer": state.ne[0], "n_heads": x.ne[1], "n_kv_heads": outer.ne[1]}
    return sized(operator, "f32", n_inner=x.ne[0], n_tokens=n_tokens, **sizes)


def _scan_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    """One sequence of tokens and its state; the decay is one of each state where heads have one channel."""
    d, states, heads, n = of.n_inner, of.n_outer, of.n_heads, of.n_tokens
    groups, state, x = f32(states, of.n_kv_heads, n), f32(states, d, heads), f32(d, heads, n)
    output = f32(x.n_elements + state.n_elements)
    return output, (state, x, f32(heads, n), f32(states if d == 1 else 1, heads), groups, groups, i32(1))


def _state_terms(of: OperatorShape, _: int, __: int) -> tuple[float, ...]:
    """The elements of all heads, and of their states: each as long as the head, or as a scan says itself."""
    elements = max(1, of.n_heads) * of.n_inner
    return (elements, elements * (max(1, of.n_outer) if of.op == "SSM_SCAN" else of.n_inner))


def _linear_attention(per_state: int, per_element: int = 0) -> CountRule:
    """Count a state (d, d) for each head: so many FLOPs for each element of it and of a token's row.

    RWKV-6: k v, its bonus added to the state, r times that summed, decay and sum of the state: 7.
    RWKV-7: a s summed, k v, three terms of the state summed, r times the state summed: 9.
    Gated linear attention: k v, decay and sum of the state, q times the state summed: 5, and q is scaled.
    """
    return lambda _, sources: (per_state * sources[0].ne[0] + per_element) * sources[0].n_elements


def _state_sides(operator: Operator, batch: Batch) -> OperatorShape:
    size, n_heads, n_tokens, _ = operator.sources[0].ne
    return sized(operator, n_inner=size, n_tokens=n_tokens, n_heads=n_heads)


def _state_alone(n_rows: int, *, has_bonus: bool) -> AloneRule:
    """So many rows of each head and token, where `has_bonus` one row of each head, and the state."""

    def rule(of: OperatorShape) -> tuple[TensorShape, Sources]:
        size, heads, n = of.n_inner, of.n_heads, of.n_tokens
        rows, bonus = (f32(size, heads, n),) * n_rows, (f32(size, heads),) * has_bonus
        return f32(size * heads, n + size), (*rows[:3], *bonus, *rows[3:], f32(size * size * heads, 1))

    return rule


def _delta_flops(_: TensorShape, sources: Sources) -> int:
    """q, k (d, hk, n), v (d, h, n), g (1 or d, h, n), beta (1, h, n), state (d, d, h): 7 d + 3 an element of v.

    Decay of the state: 1; s k: 2; s + k (v - s k) beta: 2 and, an element, 2; s q: 2 and a scale. And exp(g).
    """
    values, gate = sources[2:4]
    return (7 * values.ne[0] + 3) * values.n_elements + gate.n_elements


def _delta_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count heads of values and of keys, and the gates of a head: one, or one for each row of its state."""
    _, keys, values, gate = operator.sources[:4]
    size, n_heads, n_tokens, n_sequences = values.ne
    sizes = {"n_outer": gate.ne[0], "n_heads": n_heads, "n_kv_heads": keys.ne[1]}
    return sized(operator, "f32", n_inner=size, n_tokens=n_tokens * n_sequences, **sizes)


def _delta_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    size, heads, n = of.n_inner, of.n_heads, of.n_tokens
    keys, values = f32(size, of.n_kv_heads, n), f32(size, heads, n)
    gate, weight = f32(size if of.n_outer == size else 1, heads, n), f32(1, heads, n)
    return f32(size * heads, n + size), (keys, keys, values, gate, weight, f32(size, size, heads))


def _joined_flops(output: TensorShape, sources: Sources) -> int:
    """Streams (k, h, n), weights (h, n): a weighted sum, 2 an element; weights (k, h, n) go through a sigmoid."""
    streams, weights = sources
    is_gated = weights.ne[:3] == streams.ne[:3]
    return (2 + SIGMOID_FLOPS) * streams.n_elements + output.n_elements if is_gated else 2 * streams.n_elements


def _joined_sides(operator: Operator, batch: Batch) -> OperatorShape:
    streams, weights = operator.sources[:2]
    width, n_streams, n_tokens, _ = streams.ne
    n_weights = width if weights.ne[:2] == streams.ne[:2] else 1
    return sized(operator, n_inner=width, n_outer=n_weights, n_tokens=n_tokens, n_heads=n_streams)


def _joined_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    streams = f32(of.n_inner, of.n_heads, of.n_tokens)
    return f32(of.n_inner, of.n_tokens), (streams, streams if of.n_outer > 1 else f32(of.n_heads, of.n_tokens))


def _parted_sides(operator: Operator, batch: Batch) -> OperatorShape:
    width, n_streams, n_tokens, _ = operator.output.ne
    n_mixed = n_streams if len(operator.sources) > 3 else 1
    return sized(operator, n_inner=width, n_outer=n_mixed, n_tokens=n_tokens, n_heads=n_streams)


def _parted_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    k, heads, n = of.n_inner, of.n_heads, of.n_tokens
    mixing = (f32(heads, heads, n),) * (of.n_outer > 1)
    return f32(k, heads, n), (f32(k, n), f32(k, heads, n), f32(heads, n), *mixing)


def _stream_terms(of: OperatorShape, _: int, __: int) -> tuple[float, ...]:
    """The elements of all streams, and as often as each is mixed or gated."""
    elements = max(1, of.n_heads) * of.n_inner
    return (elements, elements * min(of.n_outer, of.n_heads))


def _index_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    size, positions, heads, n = of.n_inner, of.n_outer, of.n_heads, of.n_tokens
    key, mask = shape(of.type, size, 1, positions), shape("f16", positions, n)
    return f32(positions, n), (f32(size, heads, n), key, f32(heads, n), mask)


def _index_sides(operator: Operator, batch: Batch) -> OperatorShape:
    query, key = operator.sources[:2]
    size, n_heads, n_tokens, n_streams = query.ne
    return sized(operator, key.type, n_inner=size, n_outer=key.ne[2], n_tokens=n_tokens * n_streams, n_heads=n_heads)


def _patch_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count what is under the kernel, the kernel's width, and the places of the kernel."""
    output, width = operator.output, operator.sources[0].ne[0]
    return sized(operator, output.type, n_inner=output.ne[0], n_outer=width, n_tokens=prod(output.ne[1:]))


def _patch_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    """What is under a kernel that moves over one row of each channel, the kernel, and these rows."""
    width, n, channels = of.n_outer, of.n_tokens, max(1, of.n_inner // of.n_outer)
    return shape(of.type, width * channels, n), (shape(of.type, width, channels), f32(n + width - 1, channels))


def _window_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count what is left of each row, and how much of it is one element then."""
    output = operator.output
    n_seen = operator.sources[0].n_elements // max(1, output.n_elements)
    return sized(operator, n_inner=output.ne[0], n_tokens=prod(output.ne[1:]), n_used=n_seen)


def _channels(operator: Operator) -> int:
    """Count the channels of a kernel, by which its patches are shared: its third dimension, or its second of two."""
    width, height, depth, _ = operator.sources[0].ne
    return depth if depth > 1 and operator.output.ne[0] == width * height * depth else height


def _volume_flops(output: TensorShape, sources: Sources) -> int:
    """Kernel (w, h, d, c m), volume (.., c N), output (.., m N): 2 w h d c for each element of the output."""
    kernel, volume = sources
    channels = isqrt(kernel.ne[3] * volume.ne[3] // max(1, output.ne[3]))
    return 2 * prod(kernel.ne[:3]) * channels * output.n_elements


def _transposed(n_dimensions: int) -> CountRule:
    """Count a kernel (w.., m, c) on data (l.., c, N): 2 w m c for each place of the data."""

    def rule(_: TensorShape, sources: Sources) -> int:
        kernel, ne = sources[0], sources[1].ne
        return 2 * kernel.n_elements * prod(ne[:n_dimensions]) * prod(ne[n_dimensions + 1 :])

    return rule


def _convolution(output: TensorShape, sources: Sources) -> int:
    """Kernel (w, h, c, m): 2 w h c for each element of the output; one kernel for each channel has c = 1."""
    return 2 * prod(sources[0].ne[:3]) * output.n_elements


STATE_RULES: Sequence[OpRule] = (
    OpRule(
        "LIGHTNING_INDEXER",
        kind="attention",
        # q (d, h, n), k (d, 1, T), w (h, n), mask (T, n): h n T (2 d + 3) and a mask; dot product, ReLU, weighted sum.
        flops=lambda out, src: (src[0].ne[1] * (2 * src[0].ne[0] + 3) + 1) * out.n_elements,
        typed_source=1,
        threads=by_rows(lambda operator: operator.output.ne[0]),
        axes=_index_sides,
        features=lambda of, _, __: (
            max(1, of.n_outer) * of.n_inner,
            max(1, of.n_heads) * max(1, of.n_outer) * of.n_inner,
        ),
        alone=_index_alone,
    ),
    OpRule(
        "SOLVE_TRI",
        kind="solve",
        # A (n, n), B (k, n): row i of k columns takes i products and additions, a difference and a division: n + 1.
        flops=lambda out, src: (src[0].ne[0] + 1) * out.n_elements,
        threads=by_rows(lambda operator: operator.output.ne[0] * prod(operator.output.ne[2:])),
        axes=lambda op, _: sized(
            op, n_inner=op.sources[0].ne[0], n_outer=op.sources[1].ne[0], n_tokens=prod(op.sources[0].ne[2:])
        ),
        features=lambda of, _, __: (of.n_inner * max(1, of.n_outer), of.n_inner**2 * max(1, of.n_outer)),
        alone=lambda of: (
            f32(of.n_outer, of.n_inner, of.n_tokens),
            (f32(of.n_inner, of.n_inner, of.n_tokens), f32(of.n_outer, of.n_inner, of.n_tokens)),
        ),
    ),
    OpRule(
        "SSM_CONV",
        kind="convolution",
        # x (k - 1 + n, d), kernel (k, d): 2 k for each of the d n elements of the output.
        flops=lambda out, src: 2 * src[1].ne[0] * out.n_elements,
        weight_source=1,
        threads=by_rows(lambda operator: operator.sources[0].ne[1]),
        axes=lambda op, _: sized(  # channels, and the tokens that each sees
            op, n_inner=op.output.ne[0], n_outer=op.sources[1].ne[0], n_tokens=op.output.ne[1] * op.output.ne[2]
        ),
        features=lambda of, _, __: (of.n_inner, of.n_inner * max(1, of.n_outer)),
        alone=lambda of: (
            f32(of.n_inner, of.n_tokens),
            (f32(of.n_outer - 1 + of.n_tokens, of.n_inner), f32(of.n_outer, of.n_inner)),
        ),
    ),
    OpRule(
        "SSM_SCAN",
        kind="recurrence",
        flops=_scan_flops,
        reads=_scan_reads,
        weight_source=3,
        threads=by_rows(lambda operator: operator.sources[1].ne[1]),
        axes=_scan_sides,
        features=_state_terms,
        alone=_scan_alone,
        params=params(1),
    ),
    *(
        OpRule(
            name,
            kind="recurrence",
            flops=_linear_attention(*flops),
            weight_source=3,
            threads=by_rows(lambda operator: operator.sources[1].ne[1], meets=name != "RWKV_WKV7"),
            axes=_state_sides,
            features=_state_terms,
            alone=_state_alone(n_rows, has_bonus=name == "RWKV_WKV6"),
            params=params(1.0),
        )
        for name, flops, n_rows in (("RWKV_WKV6", (7,), 4), ("RWKV_WKV7", (9,), 6), ("GATED_LINEAR_ATTN", (5, 1), 4))
    ),
    OpRule(
        "GATED_DELTA_NET",
        kind="recurrence",
        flops=_delta_flops,
        threads=by_heads_and_sequences,
        axes=_delta_sides,
        features=_state_terms,
        alone=_delta_alone,
        params=params(1),
    ),
    OpRule(
        "DSV4_HC_COMB",
        kind="streams",
        # Mixes ((2 + h) h, n), scale, base: softmax of h x h weights a token (scale, base, maximum, difference,
        # exponential, sum, division, offset: 8), then rows and columns normalised in turn, 2 each, one less than two a
        # round.
        flops=per_element(8 + 2 * (2 * SINKHORN_ROUNDS - 1)),
        weight_source=2,
        threads=THIRD_DIMENSION,
        axes=lambda op, _: sized(op, n_inner=op.output.ne[0] * op.output.ne[1], n_tokens=op.output.ne[2]),
        # The weights of 4 streams, the only number that ggml knows, and what they are made of.
        alone=lambda of: (f32(4, 4, of.n_tokens), (f32(24, of.n_tokens), f32(3), f32(24))),
        params=params(_EPSILON, SINKHORN_ROUNDS),
    ),
    OpRule(
        "DSV4_HC_PRE",
        kind="streams",
        flops=_joined_flops,
        threads=ELEMENTS,
        axes=_joined_sides,
        features=_stream_terms,
        alone=_joined_alone,
        params=lambda of: (1.0, int(of.n_outer > 1)),
    ),
    OpRule(
        "DSV4_HC_POST",
        kind="streams",
        # x (k, n), streams (k, h, n), weights (h, n), mixing (h, h, n) or none: x w + mixing streams, 1 + 2 h or 2.
        flops=lambda out, src: (1 + 2 * out.ne[1] if len(src) > 3 else 2) * out.n_elements,
        threads=ELEMENTS,
        axes=_parted_sides,
        features=_stream_terms,
        alone=_parted_alone,
    ),
    OpRule(
        "IM2COL",
        kind="convolution",
        reads=first_unread,
        threads=by_rows(_channels),
        axes=_patch_sides,
        alone=_patch_alone,
        params=params(1, 0, 0, 0, 1, 0, 0),
        stand_in="CPY",
    ),
    OpRule(
        "IM2COL_3D",
        kind="convolution",
        reads=first_unread,
        threads=by_rows(lambda operator: operator.output.ne[0] // max(1, prod(operator.sources[0].ne[:3]))),
        stand_in="CPY",
    ),
    OpRule(
        "COL2IM_1D",
        kind="convolution",
        flops=per_source_element(1),
        threads=by_rows(lambda operator: operator.output.ne[0]),
    ),
    *(
        OpRule(name, kind="convolution", flops=flops)
        for name, flops in (
            *(("CONV_2D", _convolution), ("CONV_2D_DW", _convolution), ("CONV_3D", _volume_flops)),
            *((f"CONV_TRANSPOSE_{number}D", _transposed(number)) for number in (1, 2)),
        )
    ),
    *(
        OpRule(
            name,
            kind="pool",
            flops=per_source_element(1),
            threads=ON_ONE_THREAD,
            axes=_window_sides,
            features=chosen_terms,
            alone=lambda of: (f32(of.n_inner, of.n_tokens), (f32(of.n_inner * of.n_used, of.n_tokens),)),
            params=rule,
        )
        for name, rule in (
            ("POOL_1D", lambda of: (0, max(1, of.n_used), max(1, of.n_used), 0)),
            ("POOL_2D", lambda of: (0, max(1, of.n_used), 1, max(1, of.n_used), 1, 0, 0)),
        )
    ),
)
