"""How often a router that prefers no expert would reuse them, and between which bounds a run of it would lie.

In each of T steps of one token such a router draws u of E experts. An expert is active with p = u / E, and the gap
between two activations is geometric, E / u on average. A run of T steps sees only gaps that begin and end in it:

    mean distance = sum of (T - d) d q_d / sum of (T - d) q_d over d = 1 .. T - 1,  q_d = p^2 (1 - p)^(d - 1)

which is well below E / u in a short run. The density of a step is u / E whatever the router, for the experts of a token
are different ones: that is no expectation but an identity. The bounds follow from the spread of simulated runs, for the
gaps of one step's experts depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist, stdev

import numpy as np

#: Chance that a router without preference stays within its bounds.
COVERAGE_RATIO = 0.99

#: Runs that are simulated, fewer of long ones: their spread is small, and known well enough.
_MOST_RUNS, _LEAST_RUNS, _MOST_DRAWS = 200, 24, 100_000
_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseExpectation:
    """What a router without preference does in a run; distances in steps."""

    n_experts: int
    n_used: int
    n_steps: int
    #: None where no run is long enough to see an expert twice.
    mean_distance: float | None
    lower_distance: float | None
    upper_distance: float | None
    #: How many distances a run of all layers is expected to see.
    n_distances: float

    @property
    def density_ratio(self) -> float:
        """Part of the experts that is active in a step of one token, exactly."""
        return self.n_used / self.n_experts


def reuse_expectation(n_experts: int, n_used: int, n_layers: int, n_steps: int) -> ReuseExpectation:
    """Return what a router without preference would do in `n_steps` of one token, over `n_layers` that route."""
    active = n_used / n_experts
    gaps = np.arange(1, max(2, n_steps), dtype=np.float64)
    weights = np.maximum(0.0, n_steps - gaps) * active**2 * (1.0 - active) ** (gaps - 1.0)
    n_distances = float(weights.sum()) * n_experts * n_layers
    mean = float((weights * gaps).sum() / weights.sum()) if weights.any() else None
    means = _simulated_means(n_experts, n_used, n_layers, n_steps) if n_steps > 1 else []
    within = NormalDist().inv_cdf((1.0 + COVERAGE_RATIO) / 2.0) * stdev(means) if len(means) > 1 else None
    return ReuseExpectation(
        n_experts=n_experts,
        n_used=n_used,
        n_steps=n_steps,
        mean_distance=mean,
        lower_distance=None if mean is None or within is None else mean - within,
        upper_distance=None if mean is None or within is None else mean + within,
        n_distances=n_distances,
    )


def _simulated_means(n_experts: int, n_used: int, n_layers: int, n_steps: int) -> list[float]:
    """Return the mean distance of simulated runs, where they have one; the same ones every time."""
    random = np.random.default_rng(_SEED)
    n_runs = max(_LEAST_RUNS, min(_MOST_RUNS, _MOST_DRAWS // (n_steps * n_layers)))
    last = np.full((n_runs, n_layers, n_experts), -1, dtype=np.int32)
    totals, counts = np.zeros(n_runs, dtype=np.int64), np.zeros(n_runs, dtype=np.int64)
    for step in range(n_steps):
        keys = random.random(last.shape, dtype=np.float32)
        chosen = np.argpartition(keys, n_used - 1, axis=2)[:, :, :n_used]
        before = np.take_along_axis(last, chosen, axis=2)
        is_again = before >= 0
        totals += np.where(is_again, step - before, 0).sum(axis=(1, 2))
        counts += is_again.sum(axis=(1, 2))
        np.put_along_axis(last, chosen, np.int32(step), axis=2)
    return [total / count for total, count in zip(totals.tolist(), counts.tolist(), strict=True) if count]
