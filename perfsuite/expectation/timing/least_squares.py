"""Least squares with weights of 0 or more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def nonnegative_weights(terms: Sequence[Sequence[float]], values: Sequence[float]) -> tuple[float, ...]:
    """Return weights w of 0 or more that make |terms w - values| least.

    Each term is scaled by its largest value first. `scipy.optimize.nnls` is quicker, but from SciPy 1.12 to 1.15 it may
    stop at a point that is not the least.
    """
    # Imported here because scipy is slow to import and the plugin is loaded by every run of pytest.
    from scipy.optimize import lsq_linear

    columns = np.asarray(terms, dtype=float)
    scale = np.max(np.abs(columns), axis=0)
    scale[scale == 0.0] = 1.0
    found = lsq_linear(columns / scale, np.asarray(values, dtype=float), bounds=(0.0, np.inf), method="bvls", tol=1e-12)
    # The bounds hold but for a rounding, which would make more of a term cost less.
    return tuple(max(0.0, float(weight)) for weight in found.x / scale)
