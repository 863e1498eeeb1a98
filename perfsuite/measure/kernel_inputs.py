"""Random contents for the arrays that kernels read; the values do not matter to the time, their layout does."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from perfsuite.measure.kernel_references import Array as Array
from perfsuite.workload.kernel_catalog import BLOCK_SIZES


def floats(rng: Generator, *shape: int) -> Array:
    """Return F32 values of mean 0 and standard deviation 1."""
    return rng.standard_normal(shape, dtype=np.float32)


def halves(rng: Generator, *shape: int) -> Array:
    """Return F16 values below 2 of either sign, subnormal ones too: random bits without the exponent's highest."""
    bits = rng.integers(1 << 16, size=shape, dtype=np.uint16)
    bits &= np.uint16(0xBFFF)
    return bits.view(np.float16)


def stored(rng: Generator, type: str, rows: int, columns: int) -> Array:
    """Return weights [rows, columns] as they lie in memory; rows of random ggml blocks where quantised."""
    if type == "f32":
        return floats(rng, rows, columns)
    if type == "f16":
        return halves(rng, rows, columns)
    values, n_bytes = BLOCK_SIZES[type]
    blocks = rng.integers(256, size=(rows, columns // values, n_bytes), dtype=np.uint8)
    blocks[..., :2] = halves(rng, rows, columns // values, 1).view(np.uint8)
    return blocks.reshape(rows, -1)
