"""Collects replicates that had the processors for themselves, and what a group of cases makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from perfsuite.device.covariates import host_covariates
from perfsuite.device.profile import Profile
from perfsuite.measure.contention import Contention
from perfsuite.measure.sentinel import SENTINELS, Sentinels
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
    #: By sentinel: its time in each replicate, ns.
    sentinels_ns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Whether the processor's ceilings are those of what was measured.
    on_processor: bool = True
    #: What may explain the run and does not identify it; None is 'not measured'.
    covariates: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicates:
    """The payloads of valid replicates."""

    payloads: tuple[dict[str, Any], ...]
    #: Why none of them can be trusted, where too few were valid.
    complaint: str | None
    n_discarded: int
    #: The machine's state before the first replicate.
    started_with: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def sentinels_ns(self) -> dict[str, tuple[int, ...]]:
        """By sentinel: its time in each replicate that has measured it."""
        found = [Sentinels.from_plain(each["sentinels"]) for each in self.payloads if "sentinels" in each]
        return {name: tuple(each.times_ns[name] for each in found) for name in SENTINELS} if found else {}

    @property
    def covariates(self) -> dict[str, float | None]:
        """The machine's state before the first replicate, and the competition in the middle one."""
        contentions = [Contention.from_plain(payload["contention"]) for payload in self.payloads]
        return {
            **self.started_with,
            "waiting_ratio": _known_median([each.waiting_ratio for each in contentions]),
            "steal_ratio": _known_median([each.steal_ratio for each in contentions]),
        }

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
    complain: Callable[[Contention, Profile], str | None],
    what: str,
    progress: ProgressLine,
) -> Replicates:
    """Run until `n_replicates` were valid, or as many were not."""
    started_with = host_covariates()
    valid: list[dict[str, Any]] = []
    complaints: list[str] = []
    while len(valid) < config.n_replicates and len(complaints) < config.n_replicates:
        progress.step(what)
        payload = run()
        complaint = complain(Contention.from_plain(payload["contention"]), config.profile)
        if complaint is None:
            valid.append(payload)
            continue
        complaints.append(complaint)
        progress.add_steps(1)
    if len(valid) >= min(MIN_SAMPLES, config.n_replicates):
        return Replicates(payloads=tuple(valid), complaint=None, n_discarded=len(complaints), started_with=started_with)
    seen = f"{complaints[-1]} in {len(complaints)} of {len(complaints) + len(valid)} replicates"
    complaint = f"{seen}; free the machine and run again"
    return Replicates(
        payloads=tuple(valid), complaint=complaint, n_discarded=len(complaints), started_with=started_with
    )


def _known_median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
