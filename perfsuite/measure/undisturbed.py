"""Runs a worker again where somebody else had the processors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.measure.complaint import waiting_complaint
from perfsuite.measure.contention import Contention
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import Plan, task_of

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
