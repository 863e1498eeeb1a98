"""What the kernels of the OpenCL ceilings compute, from small whole numbers of which everything is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Passes of a launch that is verified.
TRIED_PASSES = 3
#: The operands of ``acc = acc * x + y``: it converges, so that no number of passes overflows.
X, Y = np.float32(0.5), np.float32(1.0)
#: The operand of a dot product: the signed bytes -5, 2, -3, 1, the first the lowest.
BYTES = np.uint32(0x01FD02FB)
#: What small starts are multiplied by where all four bytes count: 2³² over the golden ratio.
SPREAD = np.uint32(0x9E3779B1)


def small_numbers(count: int) -> NDArray[np.float32]:
    """Return whole numbers that repeat after a prime, so that no shift by a vector goes unseen."""
    return np.asarray(np.arange(count) % 251, dtype=np.float32)


def streamed(before: NDArray[np.float32], kind: str, size: int) -> NDArray[np.float32]:
    """Return what memory holds after a stream over arrays of a size: what was not to be written as before."""
    after = before.copy()
    if kind == "copy":
        after[size : 2 * size] = before[:size]
    elif kind == "triad":
        after[2 * size : 3 * size] = before[:size] + before[size : 2 * size] / np.float32(1024)
    return after


def chained(part: str, n_items: int, n_accumulators: int, width: int) -> NDArray[Any]:
    """Return each item's sum over its chains, each begun as the source says; every value is exact."""
    start = np.arange(n_items)[:, None, None] % 8 + np.arange(n_accumulators)[:, None] + np.arange(width)
    if part in ("FP32", "F16"):
        floats = start.astype(np.float64)
        for _ in range(TRIED_PASSES):
            floats = floats * float(X) + float(Y)
        return np.asarray(floats.sum(axis=(1, 2)), dtype=np.float32)
    acc = start.astype(np.uint32) * SPREAD
    weights = np.array([BYTES]).view(np.int8).astype(np.int64)
    for _ in range(TRIED_PASSES):
        products = acc[..., None].view(np.int8).astype(np.int64) @ weights
        acc = acc + products.astype(np.uint32)
    return np.asarray(acc.sum(axis=(1, 2), dtype=np.uint32))
