"""Ratios of interleaved pairs, summarised by their median with a distribution-free bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatio:
    """New over old, over pairs."""

    median_ratio: float
    #: One-sided bounds of the median at the confidence asked for.
    lower_ratio: float
    upper_ratio: float
    n_pairs: int


def paired_ratio(old_ns: Sequence[int], new_ns: Sequence[int], *, confidence: float = 0.95) -> PairedRatio:
    """Summarise pairs taken one beside the other.

    The bounds are order statistics: the chance that the median lies above the k-th largest of n ratios is the chance
    of fewer than k heads in n tosses of a coin. They hold for any distribution of the noise.

    Raises ValueError: the sides differ in length, are too short for the confidence, or hold a time that is not
    positive.
    """
    if len(old_ns) != len(new_ns):
        raise ValueError(f"{len(old_ns)} old and {len(new_ns)} new latencies are no pairs")
    if any(value <= 0 for value in (*old_ns, *new_ns)):
        raise ValueError("a latency is not positive")
    n_pairs = len(old_ns)
    from scipy.stats import binom  # late, for its import takes longer than most commands

    n_cut = int(binom.ppf(1.0 - confidence, n_pairs, 0.5)) - 1 if n_pairs else -1
    if n_cut < 0:
        raise ValueError(f"{n_pairs} pairs are too few for a bound at {confidence:.0%}")
    ratios = sorted(new / old for old, new in zip(old_ns, new_ns, strict=True))
    return PairedRatio(
        median_ratio=median(ratios), lower_ratio=ratios[n_cut], upper_ratio=ratios[n_pairs - 1 - n_cut], n_pairs=n_pairs
    )
