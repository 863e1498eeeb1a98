"""Runs a worker again where somebody else had the processors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.measure.contention import Contention
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import Plan, task_of

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


#: How often a worker is run at most until one run was undisturbed.
N_TRIES = 3


class Run(Protocol):
    """Runs one plan in a fresh process and returns its payload, as `perfsuite.measure.launch.run_worker`."""

    def __call__(self, plan: Plan, *, extra_environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Run it."""


def run_undisturbed(
    plan: Plan,
    profile: Profile,
    *,
    n_tries: int = N_TRIES,
    extra_environment: Mapping[str, str] | None = None,
    complain: Callable[[Contention, Profile], str | None] = waiting_complaint,
    run: Run | None = None,
) -> dict[str, Any]:
    """Run a plan in fresh processes until one had the processors for itself; return its payload.

    `complain` says why a process cannot be used. `run` starts one: that of a board, or on this machine by default.

    Raises `MeasurementError` where none of `n_tries` had them, with what the last one met; or a worker failed.
    """
    complaint: str | None = None
    for _ in range(n_tries):
        payload = (run or run_worker)(plan, extra_environment=extra_environment)
        complaint = complain(Contention.from_plain(payload["contention"]), profile)
        if complaint is None:
            return payload
    raise MeasurementError(
        f"{task_of(plan)}: disturbed in each of {n_tries} tries, at last {complaint}; run it when nothing else runs"
    )
