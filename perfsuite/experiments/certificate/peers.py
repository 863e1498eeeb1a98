"""The rules by which other tools claim a slowdown, on the same samples, so that their error rates can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import fmean, median, stdev

import numpy as np
from numpy.typing import NDArray

#: Criterion takes 100 000; 2000 are fifty times as fast, and find the 2.5 % quantile between 1.8 and 3.2 %.
_N_RESAMPLES = 2000
_SEED = 20_240_229

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSamples:
    """Raw latencies of both sides, ns: for each process, in the order in which they ran, those of its repetitions."""

    old: tuple[tuple[int, ...], ...]
    new: tuple[tuple[int, ...], ...]


def mean_alarms(samples: PeerSamples, *, threshold_ratio: float) -> bool:
    """Hold the mean of one process against that of one other: new > old (1 + threshold).

    *Source*: pytest-benchmark, utils.py, PercentageRegressionCheck (--benchmark-compare-fail).
    """
    return fmean(samples.new[0]) > fmean(samples.old[0]) * (1.0 + threshold_ratio)


def asv_alarms(samples: PeerSamples) -> bool:
    """Pool the processes of each side: medians apart by a factor of 1.1, and a two-sided Mann-Whitney p below 0.002.

    One repetition a side is judged by the factor alone. Where even separate samples could not reach the threshold, the
    99 % intervals of the medians would have to be apart; of so few samples they are infinite, so nothing is claimed.

    *Source*: asv, commands/compare.py, _is_result_better, and statistics.py, is_different.
    """
    old, new = tuple(chain(*samples.old)), tuple(chain(*samples.new))
    if median(new) <= 1.1 * median(old):
        return False
    if len(old) == 1 or len(new) == 1:
        return True
    n_orders = math.comb(len(old) + len(new), len(old))  # one over it is the least p that there can be
    return n_orders > 500 and _mann_whitney_p(old, new) < 0.002


def google_benchmark_alarms(samples: PeerSamples) -> bool:
    """Apply a two-sided Mann-Whitney test to the repetitions of one process each, from 2 repetitions on.

    *Source*: google/benchmark, tools/gbench/report.py, calc_utest (compare.py, --alpha 0.05).
    """
    old, new = samples.old[0], samples.new[0]
    return min(len(old), len(new)) > 1 and median(new) > median(old) and _mann_whitney_p(old, new) < 0.05


def tango_alarms(samples: PeerSamples) -> bool:
    """Test paired differences: mean / (deviation / sqrt(n)) >= 2.6, and a mean of more than 0.5 % of the old one.

    Tango interleaves single calls of both sides in one process. Here a pair is the medians of two processes that ran
    one beside the other; processes without a partner are left out.

    *Source*: tango-bench, lib.rs, DiffEstimate::build.
    """
    pairs = [(median(old), median(new)) for old, new in zip(samples.old, samples.new, strict=False)]
    differences = [new - old for old, new in pairs]
    if len(pairs) < 2 or fmean(differences) / fmean(old for old, _ in pairs) <= 0.005:
        return False
    return fmean(differences) >= 2.6 * stdev(differences) / math.sqrt(len(pairs))


def criterion_alarms(samples: PeerSamples) -> bool:
    """Bootstrap within one process each: means differ (p < 0.05), and the 95 % interval of their change is above 1 %.

    p is that of Welch's t among resamples of both sides mixed, two-sided; the interval is the percentile interval of
    mean(new) / mean(old) - 1 among resamples of each side. The resamples are the same on every call.

    *Source*: criterion.rs, analysis/compare.rs, and report.rs, compare_to_threshold.
    """
    old, new = np.array(samples.old[0], dtype=np.float64), np.array(samples.new[0], dtype=np.float64)
    if min(len(old), len(new)) < 2:
        return False
    generator = np.random.default_rng(_SEED)
    change = _resamples(generator, new, len(new)).mean(axis=1) / _resamples(generator, old, len(old)).mean(axis=1) - 1.0
    return bool(np.quantile(change, 0.025) > 0.01) and _mixed_bootstrap_p(generator, old, new) < 0.05


def _mann_whitney_p(old: Sequence[int], new: Sequence[int]) -> float:
    from scipy.stats import mannwhitneyu  # late, for its import takes longer than most commands

    return float(mannwhitneyu(new, old, alternative="two-sided").pvalue)


def _mixed_bootstrap_p(generator: np.random.Generator, old: _Floats, new: _Floats) -> float:
    mixed = _resamples(generator, np.concatenate((new, old)), len(new) + len(old))
    below = np.mean(_welch_t(mixed[:, len(new) :], mixed[:, : len(new)]) < _welch_t(old[None], new[None]))
    return float(2.0 * min(below, 1.0 - below))


def _resamples(generator: np.random.Generator, values: _Floats, size: int) -> _Floats:
    """Draw with replacement; shape (resamples, size)."""
    return generator.choice(values, size=(_N_RESAMPLES, size))


def _welch_t(old: _Floats, new: _Floats) -> _Floats:
    """Return Welch's t along the last axis; infinite, or not a number, where nothing varies."""
    errors = old.var(axis=1, ddof=1) / old.shape[1] + new.var(axis=1, ddof=1) / new.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((new.mean(axis=1) - old.mean(axis=1)) / np.sqrt(errors), dtype=np.float64)


#: Every rule at its own defaults, by its name; those of pytest-benchmark at two thresholds, as it has none of its own.
PEERS: Mapping[str, Callable[[PeerSamples], bool]] = {
    "pytest-benchmark mean:5%": partial(mean_alarms, threshold_ratio=0.05),
    "pytest-benchmark mean:10%": partial(mean_alarms, threshold_ratio=0.1),
    "asv (factor 1.1)": asv_alarms,
    "google/benchmark": google_benchmark_alarms,
    "criterion": criterion_alarms,
    "tango": tango_alarms,
}
