"""A straight line through points, and how well they lie on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFit:
    """``y = intercept + slope * x`` of least squares."""

    n_points: int
    slope: float
    intercept: float
    #: 1 - residual / total sum of squares; None where all y are the same.
    r_squared: float | None
    #: Root of the mean square of the distances, in the unit of y.
    residual: float
    #: For each point, ``y / line - 1``; None where the line is at 0 or below.
    deviations_ratio: tuple[float | None, ...]

    def at(self, x: float) -> float:
        """Return the line's y at x."""
        return self.intercept + self.slope * x


def fit_line(x: Sequence[float], y: Sequence[float], *, is_relative: bool = False) -> LineFit | None:
    """Fit a line; None where there are fewer than 3 points, or fewer than 2 different x.

    Two points lie on their line whatever they are, so they show nothing.

    Where `is_relative`, distances are counted in parts of y, so that small ones count as much as large ones.
    """
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if across.size < 3 or np.unique(across).size < 2:
        return None
    weights = 1.0 / np.maximum(up, np.finfo(np.float64).tiny) if is_relative else np.ones_like(up)
    scale = float(np.abs(across).max()) or 1.0
    columns = np.stack([across / scale, np.ones_like(across)], axis=1) * weights[:, None]
    (slope, intercept), *_ = np.linalg.lstsq(columns, up * weights, rcond=None)
    line = intercept + slope / scale * across
    squares, total = float(((up - line) ** 2).sum()), float(((up - up.mean()) ** 2).sum())
    return LineFit(
        n_points=int(across.size),
        slope=float(slope / scale),
        intercept=float(intercept),
        r_squared=1.0 - squares / total if total > 0.0 else None,
        residual=float(np.sqrt(squares / across.size)),
        deviations_ratio=tuple(
            float(each / on_line - 1.0) if on_line > 0.0 else None for each, on_line in zip(up, line, strict=True)
        ),
    )
