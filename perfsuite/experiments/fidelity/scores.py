"""How near a measured latency is to its ground truth: accuracy in percent, and scaled error."""

from __future__ import annotations

import math

from perfsuite.errors import PerfsuiteError

#: A relative error of 1 is 100 percent, and 1000 µs for each ms.
_PERCENT = 100.0
_US_PER_MS = 1000.0


def accuracy_percent(measured_ns: float, ground_truth_ns: float) -> float:
    """Return alpha = 100 (1 - abs(L - G) / G), where L is the measured latency and G its ground truth.

    100 is exact; a latency of more than twice its ground truth gives less than 0.

    Raises PerfsuiteError: the ground truth is not above 0, or the measured latency is below it; neither may be
    infinite.

    *Source*: lm-Meter, its tables of phases and kernels, whose printed rows follow this formula.
    """
    return _PERCENT * (1.0 - _relative_error(measured_ns, ground_truth_ns))


def scaled_error_us_per_ms(measured_ns: float, ground_truth_ns: float) -> float:
    """Return 1000 abs(L - G) / G: by how many µs each ms of the ground truth G is missed by the latency L.

    Raises as `accuracy_percent` does. *Source*: lm-Meter, the last column of the same tables.
    """
    return _US_PER_MS * _relative_error(measured_ns, ground_truth_ns)


def _relative_error(measured_ns: float, ground_truth_ns: float) -> float:
    if not 0.0 < ground_truth_ns < math.inf:
        raise PerfsuiteError(f"fidelity: ground_truth_ns is {ground_truth_ns!r}, expected a finite number above 0")
    if not 0.0 <= measured_ns < math.inf:
        raise PerfsuiteError(f"fidelity: measured_ns is {measured_ns!r}, expected a finite number of 0 or more")
    return abs(measured_ns - ground_truth_ns) / ground_truth_ns
