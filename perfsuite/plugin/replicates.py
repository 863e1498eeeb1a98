"""Collects replicates that had the processors for themselves, and what a group of cases makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perfsuite.measure.contention import Contention
from perfsuite.plugin.options import RunConfig
from perfsuite.plugin.progress import ProgressLine
from perfsuite.records.samples import CaseSamples
from perfsuite.verdict.compare import MIN_SAMPLES


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSamples:
    """What measuring a group gave."""

    samples: Mapping[str, CaseSamples]
    fingerprint: Mapping[str, str]
    #: Case ids that the record holds and no case claims, with the reason.
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    peak_rss_bytes: int | None = None
    #: Replicates that were measured under contention and left out.
    n_discarded: int = 0
    #: By phase: the share of it that its operators account for.
    operator_share_ratio: Mapping[str, float] = field(default_factory=dict)
    #: What is run, in words for the header of a report.
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicates:
    """The payloads of valid replicates."""

    payloads: tuple[dict[str, Any], ...]
    #: Why none of them can be trusted, where too few were valid.
    complaint: str | None
    n_discarded: int

    @property
    def problems(self) -> tuple[str, ...]:
        """The complaint as the problems of a case."""
        return (self.complaint,) if self.complaint else ()

    @property
    def peak_rss_bytes(self) -> int | None:
        """The largest resident size of any replicate."""
        return max((payload["peak_rss_bytes"] for payload in self.payloads), default=None)


def collect_replicates(
    config: RunConfig,
    run: Callable[[], dict[str, Any]],
    complain: Callable[[Contention, RunConfig], str | None],
    what: str,
    progress: ProgressLine,
) -> Replicates:
    """Run until `n_replicates` were valid, or as many were not."""
    valid: list[dict[str, Any]] = []
    complaints: list[str] = []
    while len(valid) < config.n_replicates and len(complaints) < config.n_replicates:
        progress.step(what)
        payload = run()
        complaint = complain(Contention.from_plain(payload["contention"]), config)
        if complaint is None:
            valid.append(payload)
            continue
        complaints.append(complaint)
        progress.add_steps(1)
    if len(valid) >= min(MIN_SAMPLES, config.n_replicates):
        return Replicates(payloads=tuple(valid), complaint=None, n_discarded=len(complaints))
    seen = f"{complaints[-1]} in {len(complaints)} of {len(complaints) + len(valid)} replicates"
    complaint = f"{seen}; free the machine and run again"
    return Replicates(payloads=tuple(valid), complaint=complaint, n_discarded=len(complaints))


def waiting_complaint(contention: Contention, config: RunConfig) -> str | None:
    """Say why a replicate of the engine cannot be used; None where it can."""
    waiting = _beyond(contention.waiting_ratio, config.profile.max_waiting_ratio)
    return f"threads waited {waiting} for a processor" if waiting else _steal_complaint(contention, config)


def others_complaint(contention: Contention, config: RunConfig) -> str | None:
    """Say why a replicate of the kernels cannot be used; None where it can.

    An OpenCL runtime on the processor has more threads than cores and lets them wait for each other, so what counts
    is the time that other processes took.
    """
    others = _beyond(contention.others_ratio, config.profile.max_others_ratio)
    return f"other processes took {others} of the processors" if others else _steal_complaint(contention, config)


def _steal_complaint(contention: Contention, config: RunConfig) -> str | None:
    steal = _beyond(contention.steal_ratio, config.profile.max_others_ratio)
    return f"the hypervisor took {steal} of the processors" if steal else None


def _beyond(ratio: float | None, limit: float) -> str | None:
    return f"{ratio * 100:.0f} % of the time (limit {limit * 100:g} %)" if ratio is not None and ratio > limit else None
