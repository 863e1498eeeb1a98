"""What a comparison with stored times can resolve: the slowdown that it would hardly miss."""

from __future__ import annotations

import math
from statistics import NormalDist

from perfsuite.verdict.prediction import CONFIDENCE, MIN_SESSIONS, t_quantile
from perfsuite.verdict.significance import Change

#: A slowdown of the resolution is reported in this share of runs.
POWER = 0.95

#: A coarser resolution than this passes nothing, unless an option says otherwise.
DEFAULT_RESOLUTION_RATIO = 0.30


def resolution_ratio(change: Change, *, n_sessions: int) -> float:
    r"""Return the slowdown that is found in 95 % of runs: a property of the spread, whatever the estimate came to.

    All in logarithms: let the estimate of a slowdown d be d + e, the noise e of the deviation :math:`\sigma`. The
    bounds lie :math:`r = q_{0.99}\,\sigma` from the estimate, so that the slowdown is found where d + e > r. That
    holds in 95 % of runs where :math:`d - r = q_{0.95}\,\sigma`, or

    .. math:: d = r \left(1 + q_{0.95} / q_{0.99}\right)

    With few sessions the spread that stands in is as it is stated, and q the quantiles of the normal distribution: d is
    1.71 r. From five sessions on :math:`\sigma` is estimated by them and independent of e, so that
    :math:`e / \sigma` has Student's t with S - 1 degrees of freedom, and with it q: a device whose sessions happen to
    look steady states a finer resolution, and one whose look unsteady a coarser, but a slowdown of what each states is
    found in 95 % all the same.

    Three things follow. A slowdown of d passes, with a bound below it, in 1 %: d + e + r < d means e < -r. What did
    not change passes in 95 %: e + r < d. It is called slower in 1 %: e > r. A margin above r asks for more before
    anything is called slower, so that a slowdown of d is then found less often; that it passes in 1 % still holds.

    Of bounds that lie unequally far from the estimate the further counts.
    """
    reach = math.log(max(change.estimate_ratio / change.lower_ratio, change.upper_ratio / change.estimate_ratio))
    if n_sessions < MIN_SESSIONS:
        sure, likely = (NormalDist().inv_cdf(quantile) for quantile in (CONFIDENCE, POWER))
    else:
        sure, likely = (t_quantile(quantile, n_sessions - 1) for quantile in (CONFIDENCE, POWER))
    return math.expm1(reach * (1.0 + likely / sure))
