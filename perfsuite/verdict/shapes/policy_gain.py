"""Gains with their intervals, from the logarithms of times by process."""

from __future__ import annotations

import math

from perfsuite.records.shape_policy import Gain
from perfsuite.verdict.shapes.policy_rounds import Floats

#: Two-sided, of a gain's interval.
CONFIDENCE = 0.95


def gain_of_grid(log_gains: Floats) -> Gain:
    """Return the geometric mean of the gains at the very shapes that were measured.

    With g_p the mean over the shapes of the logarithm of the gain in process p, of P: the mean of g_p, and Student's
    interval of it with P - 1 degrees of freedom. Processes are what varies, for all rounds of one share its buffers.

    Parameters
    ----------
    log_gains
        log(time of the other / time of the choice); shape (processes, shapes), 2 processes or more.
    """
    by_process = log_gains.mean(axis=1)
    n_processes = len(by_process)
    variance = float(by_process.var(ddof=1)) / n_processes
    return _gain(float(by_process.mean()), variance, n_processes - 1)


def gain_of_range(log_gains: Floats) -> Gain:
    """Return the geometric mean of the gains at sizes that stand for a range, which is what they are drawn from.

    Beside processes also sizes vary: v = s_p^2 / P + s_s^2 / S of the means by process and by size, with degrees of
    freedom v^2 / (a^2 / (P - 1) + b^2 / (S - 1)), a and b the two terms. One size stands for itself alone.

    *Source*: Satterthwaite, An approximate distribution of estimates of variance components, 1946.
    """
    n_processes, n_sizes = log_gains.shape
    if n_sizes == 1:
        return gain_of_grid(log_gains)
    of_processes = float(log_gains.mean(axis=1).var(ddof=1)) / n_processes
    of_sizes = float(log_gains.mean(axis=0).var(ddof=1)) / n_sizes
    variance = of_processes + of_sizes
    spread = of_processes**2 / (n_processes - 1) + of_sizes**2 / (n_sizes - 1)
    return _gain(float(log_gains.mean()), variance, variance**2 / spread if spread > 0 else 1.0)


def _gain(mean: float, variance: float, freedom: float) -> Gain:
    from scipy.stats import t  # late, for its import takes longer than most commands

    reach = float(t.ppf(0.5 + CONFIDENCE / 2.0, freedom)) * math.sqrt(variance)
    return Gain(ratio=math.exp(mean), lower_ratio=_exp(mean - reach), upper_ratio=_exp(mean + reach))


def _exp(logarithm: float) -> float:
    """Return e to the power of a logarithm, as far as a float goes and a file tells."""
    return math.exp(min(max(logarithm, -300.0), 300.0))
