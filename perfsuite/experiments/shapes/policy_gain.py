"""Gains with their intervals, from the logarithms of times by process."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from perfsuite.experiments.shapes.policy_record import Gain

Floats = NDArray[np.float64]

#: Two-sided, of a gain's interval.
CONFIDENCE = 0.95


def gain_of_range(log_gains: Floats, *, n_drawn: int) -> Gain:
    """Return the geometric mean of the gains over a range, from sizes of which each was drawn from its stratum.

    Beside processes also sizes vary, within their strata. With g_i the mean over processes at the size of stratum i, of
    S, D of which have other sizes as well,

        v = s_p^2 / P + D / S^2 d^2 / 2,    d^2 = mean of (g_(i+1) - g_i)^2

    for neighbours differ by what varies within strata and, at most, by more: a trend over the range makes the interval
    no narrower. Degrees of freedom are v^2 / (a^2 / (P - 1) + b^2 / f), a and b being the two terms, and those of d^2,

        f = 2 (S - 1)^2 / (3 S - 4)

    *Source*: von Neumann et al., The mean square successive difference, Ann. Math. Statist. 12, 1941; Satterthwaite, An
    approximate distribution of estimates of variance components, 1946.

    Parameters
    ----------
    log_gains
        log(time of the other / time of the choice); shape (processes, sizes), sizes ascending, 2 processes or more.
    n_drawn
        D. Without any, the range holds no sizes but those that were measured: processes alone vary, for all rounds of
        one share its buffers, and the interval is Student's with P - 1 degrees of freedom.
    """
    n_processes, n_sizes = log_gains.shape
    of_processes = float(log_gains.mean(axis=1).var(ddof=1)) / n_processes
    of_sizes, spread = 0.0, of_processes**2 / (n_processes - 1)
    if n_drawn and n_sizes > 1:
        steps = np.diff(log_gains.mean(axis=0))
        of_sizes = n_drawn / n_sizes**2 * float((steps**2).mean()) / 2.0
        spread += of_sizes**2 * (3 * n_sizes - 4) / (2.0 * (n_sizes - 1) ** 2)
    variance = of_processes + of_sizes
    from scipy.stats import t  # late, for its import takes longer than most commands

    freedom = variance**2 / spread if spread > 0 else 1.0
    mean, reach = float(log_gains.mean()), float(t.ppf(0.5 + CONFIDENCE / 2.0, freedom)) * math.sqrt(variance)
    return Gain(ratio=math.exp(mean), lower_ratio=_exp(mean - reach), upper_ratio=_exp(mean + reach))


def is_surely_below(measured: Gain, promised: Gain) -> bool:
    """Return whether a gain is below another one, by the interval of the difference of their logarithms.

    With differences m - p, and the reach of each interval towards the other gain, the upper end is
    m - p + sqrt((m_upper - m)^2 + (p - p_lower)^2).

    *Source*: Zou and Donner, Construction of confidence limits about effect measures, Statist. Med. 27, 2008.
    """
    above = math.log(measured.upper_ratio) - math.log(measured.ratio)
    below = math.log(promised.ratio) - math.log(promised.lower_ratio)
    return math.log(measured.ratio) - math.log(promised.ratio) + math.hypot(above, below) < 0.0


def _exp(logarithm: float) -> float:
    """Return e to the power of a logarithm, as far as a float goes and a file tells."""
    return math.exp(min(max(logarithm, -300.0), 300.0))
