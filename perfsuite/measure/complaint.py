"""Says why a replicate cannot be used: somebody else had the processors."""

from __future__ import annotations

from perfsuite.device.profile import Profile
from perfsuite.measure.contention import Contention

#: The part of the waiting that others must have taken for it to be competition.
_LEAST_OTHERS_PART = 0.25


def waiting_complaint(contention: Contention, profile: Profile) -> str | None:
    """Say why a replicate of the engine cannot be used; None where it can.

    Threads that wait for each other, because a build starts more of them than there are processors, have no competition
    but themselves: what others took then makes up little of the waiting.
    """
    waiting = _beyond(contention.waiting_ratio, profile.max_waiting_ratio)
    if waiting and contention.others_ratio is not None:
        assert contention.waiting_ratio is not None
        waiting = waiting if contention.others_ratio > contention.waiting_ratio * _LEAST_OTHERS_PART else None
    return f"threads waited {waiting} for a processor" if waiting else _steal_complaint(contention, profile)


def others_complaint(contention: Contention, profile: Profile) -> str | None:
    """Say why a replicate of the kernels cannot be used; None where it can.

    An OpenCL runtime on the processor has more threads than cores and lets them wait for each other, so what counts
    is the time that other processes took.
    """
    others = _beyond(contention.others_ratio, profile.max_others_ratio)
    return f"other processes took {others} of the processors" if others else _steal_complaint(contention, profile)


def _steal_complaint(contention: Contention, profile: Profile) -> str | None:
    steal = _beyond(contention.steal_ratio, profile.max_others_ratio)
    return f"the hypervisor took {steal} of the processors" if steal else None


def _beyond(ratio: float | None, limit: float) -> str | None:
    return f"{ratio * 100:.0f} % of the time (limit {limit * 100:g} %)" if ratio is not None and ratio > limit else None
