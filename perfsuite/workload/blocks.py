"""Rows of random weights in any ggml type.

Types that the ``gguf`` package can quantise are quantised from uniform values. The rest get random bits, which each
of these formats decodes to something, under scales that give the values the wanted spread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize
from numpy.typing import NDArray

from perfsuite.errors import QuantizationError
from perfsuite.workload.ggml_types import GgmlType

Bytes = NDArray[np.uint8]

_QUANTIZED_BY_GGUF = frozenset(
    ("F32", "F16", "BF16", "Q8_0", "Q5_0", "Q5_1", "Q4_0", "Q4_1", "TQ1_0", "TQ2_0", "MXFP4")
)


def random_rows(
    ggml_type: GgmlType, n_rows: int, n_values: int, *, deviation: float, random: np.random.Generator
) -> Bytes:
    """Return rows of random weights as bytes, shape (n_rows, bytes of a row).

    ``deviation`` is the standard deviation of the values, centred on 0; types with coarse scales come within a
    third of it.
    """
    if ggml_type.name in _QUANTIZED_BY_GGUF:
        half_width = deviation * 3.0**0.5
        values = (random.random((n_rows, n_values), dtype=np.float32) * 2 - 1) * np.float32(half_width)
        return as_bytes(values, ggml_type)
    layout = _LAYOUTS.get(ggml_type.name)
    if layout is None:
        raise QuantizationError(f"weights of ggml type {ggml_type.name} cannot be made up")
    n_bytes = ggml_type.row_bytes(n_values)
    bits: Bytes = np.frombuffer(random.bytes(n_rows * n_bytes), dtype=np.uint8).copy()
    layout.set_scale(bits.reshape(-1, ggml_type.block_bytes), deviation / layout.unit_deviation)
    return bits.reshape(n_rows, n_bytes)


def as_bytes(values: NDArray[np.float32], ggml_type: GgmlType) -> Bytes:
    """Quantise rows of values to a type that the ``gguf`` package can quantise."""
    rows = quantize(values, GGMLQuantizationType[ggml_type.name])
    as_uint8: Bytes = np.ascontiguousarray(rows).view(np.uint8).reshape(len(values), -1)
    return as_uint8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """How to scale a block of random bits: its values' standard deviation at scale 1, and where the scale goes."""

    unit_deviation: float
    set_scale: Callable[[Bytes, float], None]


def _half_at(offset: int) -> Callable[[Bytes, float], None]:
    """Keep the scale as a half-precision number at a byte offset."""

    def set_scale(blocks: Bytes, scale: float) -> None:
        blocks[:, offset : offset + 2] = np.array([scale], dtype="<f2").view(np.uint8)

    return set_scale


def _half_pair_at(offset: int, minimum_ratio: float) -> Callable[[Bytes, float], None]:
    """Keep the scale, and behind it that of the minimum, whose ratio to the former centres the values."""

    def set_scale(blocks: Bytes, scale: float) -> None:
        pair = np.array([scale, scale * minimum_ratio], dtype="<f2")
        blocks[:, offset : offset + 4] = pair.view(np.uint8)

    return set_scale


def _half_in_nibbles(blocks: Bytes, scale: float) -> None:
    """Spread a half over the high nibbles of the four 16-bit words at byte 48 (IQ1_M)."""
    half = int(np.array(scale, dtype="<f2").view("<u2"))
    for word in range(4):
        high_byte = blocks[:, 48 + 2 * word + 1]
        high_byte[:] = (high_byte & 0x0F) | (half >> 4 * word & 0x0F) << 4


def _small_floats(blocks: Bytes, scale: float) -> None:
    """Keep four scales as unsigned 8-bit floats (NVFP4), of which the first 15 are multiples of 2**-9."""
    blocks[:, :4] = min(max(round(scale * 2**9), 1), 15)


# The deviations follow from the formats' definitions in ggml/src/ggml-common.h of llama.cpp.
_LAYOUTS: Mapping[str, _Layout] = {
    "Q2_K": _Layout(unit_deviation=13.9, set_scale=_half_pair_at(80, 1.5)),
    "Q3_K": _Layout(unit_deviation=43.4, set_scale=_half_at(108)),
    "Q4_K": _Layout(unit_deviation=257.0, set_scale=_half_pair_at(0, 7.5)),
    "Q5_K": _Layout(unit_deviation=529.0, set_scale=_half_pair_at(0, 15.5)),
    "Q6_K": _Layout(unit_deviation=1368.0, set_scale=_half_at(208)),
    "Q1_0": _Layout(unit_deviation=1.0, set_scale=_half_at(0)),
    "Q2_0": _Layout(unit_deviation=1.2, set_scale=_half_at(0)),
    "IQ4_NL": _Layout(unit_deviation=67.2, set_scale=_half_at(0)),
    "IQ4_XS": _Layout(unit_deviation=1243.0, set_scale=_half_at(0)),
    "IQ3_S": _Layout(unit_deviation=141.0, set_scale=_half_at(0)),
    "IQ3_XXS": _Layout(unit_deviation=142.0, set_scale=_half_at(0)),
    "IQ2_S": _Layout(unit_deviation=56.3, set_scale=_half_at(0)),
    "IQ2_XS": _Layout(unit_deviation=56.0, set_scale=_half_at(0)),
    "IQ2_XXS": _Layout(unit_deviation=53.5, set_scale=_half_at(0)),
    "IQ1_M": _Layout(unit_deviation=7.2, set_scale=_half_in_nibbles),
    "IQ1_S": _Layout(unit_deviation=7.19, set_scale=_half_at(0)),
    "NVFP4": _Layout(unit_deviation=2.93, set_scale=_small_floats),
}
