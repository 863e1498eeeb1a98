"""What each kernel should compute, in NumPy and float64, and how far an output is from it.

Storage is exact: a reference takes the F16 values or the quantised blocks that the kernel reads, so what is left is the
kernel's own rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize as gguf_dequantize
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[Any]
Float64Array = NDArray[np.float64]

#: The largest error norm that counts as correct, by storage type. All kernels add up in F32, whose rounding leaves
#: 1e-7 to 1e-6; one output in a million off by its own size is 1e-3.
TOLERANCES: dict[str, float] = {"f32": 5e-5, "f16": 5e-5, "q8_0": 5e-5, "q4_0": 5e-5}


def error_norm(out: Array, reference: Float64Array) -> float:
    """Return ``||out - reference|| / ||reference||`` (Euclidean), infinite when ``out`` is not finite everywhere.

    Against a reference of zeros it is ``||out||``.
    """
    if out.shape != reference.shape:
        raise ValueError(f"output of shape {out.shape}, expected {reference.shape}")
    if not np.isfinite(out).all():
        return math.inf
    difference = float(np.linalg.norm(out.astype(np.float64) - reference))
    return difference / (float(np.linalg.norm(reference)) or 1.0)


def dequantize(stored: Array, type: str) -> Float64Array:
    """Return the values of stored weights: F32 and F16 as they are, rows of ggml blocks through gguf."""
    if type in ("f32", "f16"):
        return stored.astype(np.float64)
    values: Float64Array = gguf_dequantize(stored, GGMLQuantizationType[type.upper()]).astype(np.float64)
    return values


def gemm(weights: Float64Array, activations: Array) -> Float64Array:
    """Return ``activations @ weights.T``: [m, k] and [n, k] give [n, m]."""
    product: Float64Array = activations.astype(np.float64) @ weights.T
    return product


def bmm_kq(keys: Float64Array, queries: Array) -> Float64Array:
    """Return scores [heads, tokens, positions] of keys [positions, kvheads, head], queries [tokens, heads, head]."""
    by_head = np.repeat(keys, queries.shape[1] // keys.shape[1], axis=1).transpose(1, 2, 0)
    scores: Float64Array = queries.astype(np.float64).transpose(1, 0, 2) @ by_head
    return scores


def bmm_kqv(values: Float64Array, weights: Array) -> Float64Array:
    """Return [tokens, heads, head], values [positions, kvheads, head] mixed by [heads, tokens, positions]."""
    by_head = np.repeat(values, weights.shape[0] // values.shape[1], axis=1).transpose(1, 0, 2)
    mixed: Float64Array = (weights.astype(np.float64) @ by_head).transpose(1, 0, 2)
    return mixed


def rms_norm(x: Array, weight: Array, epsilon: float) -> Float64Array:
    """Return ``x / sqrt(mean(x^2) + epsilon) * weight`` row by row."""
    wide = x.astype(np.float64)
    normed: Float64Array = wide / np.sqrt(np.mean(wide**2, axis=-1, keepdims=True) + epsilon) * weight
    return normed


def rope(x: Array, positions: Array, base: float, *, neox: bool) -> Float64Array:
    """Return x [tokens, heads, head] with pair i of a head turned by ``position * base^(-2 i / head)``.

    A pair is (2 i, 2 i + 1), in the NEOX style (i, i + head / 2).
    """
    head = x.shape[-1]
    first = slice(0, head // 2) if neox else slice(0, head, 2)
    second = slice(head // 2, head) if neox else slice(1, head, 2)
    angles = positions[:, None, None] * base ** (-2.0 * np.arange(head // 2) / head)
    wide = x.astype(np.float64)
    turned = np.empty_like(wide)
    turned[..., first] = wide[..., first] * np.cos(angles) - wide[..., second] * np.sin(angles)
    turned[..., second] = wide[..., first] * np.sin(angles) + wide[..., second] * np.cos(angles)
    return turned


def softmax(x: Array, scale: float) -> Float64Array:
    """Return ``exp(scale x - max) / sum`` row by row."""
    scaled = scale * x.astype(np.float64)
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    weights: Float64Array = powers / powers.sum(axis=-1, keepdims=True)
    return weights


def silu_mul(gate: Array, up: Array) -> Float64Array:
    """Return ``gate / (1 + exp(-gate)) * up``."""
    wide = gate.astype(np.float64)
    product: Float64Array = wide / (1.0 + np.exp(-wide)) * up
    return product


def floats(rng: Generator, *shape: int) -> Array:
    """Return F32 values of mean 0 and standard deviation 1."""
    return rng.standard_normal(shape, dtype=np.float32)


def halves(rng: Generator, *shape: int) -> Array:
    """Return F16 values below 2 of either sign, subnormal ones too: random bits without the exponent's highest."""
    bits = rng.integers(1 << 16, size=shape, dtype=np.uint16)
    bits &= np.uint16(0xBFFF)
    return bits.view(np.float16)
