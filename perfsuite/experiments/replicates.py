"""Collects replicates that had the processors for themselves, and what a group of cases makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from perfsuite.device.profile import Profile
from perfsuite.errors import LinkError, MeasurementError
from perfsuite.expectation.cases import Case
from perfsuite.experiments.machine_states import StateLog
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.competition import SEEN_AFTER, await_quiet
from perfsuite.measure.contention import Contention
from perfsuite.measure.sentinel import SENTINELS, Sentinels
from perfsuite.records.observation import NO_OBSERVATION, MachineState, Observation
from perfsuite.records.samples import CaseSamples
from perfsuite.verdict.compare import MIN_SAMPLES


@dataclass(kw_only=True)
class BusyMachine:
    """The competition that one group of measurements met at its beginning."""

    config: RunConfig
    progress: ProgressLine
    #: Who competed, for whoever reads the run.
    notes: list[str] = field(default_factory=list)

    def is_quiet_again(self, complaint: str) -> bool:
        """Say who competes; return whether the machine was waited for and is quiet, so that one may begin anew."""
        seen = self.config.board.competition().text
        self.notes.append(f"the machine was busy from the beginning: {complaint}; {seen}")
        self.progress.say(f"the machine is busy: {complaint}; {seen}")
        wait_s = self.config.wait_quiet_s
        if not wait_s:
            self.progress.say("going on; --perf-wait-quiet=5m would wait for quiet")
            return False
        limit_ratio = self.config.profile.max_others_ratio
        self.progress.say(f"waiting for quiet, {wait_s:g} s at most: others below {limit_ratio * 100.0:g} %")
        is_quiet = await_quiet(self.config.board.competition, limit_ratio=limit_ratio, wait_s=wait_s)
        self.progress.say("quiet: beginning anew" if is_quiet else "it did not become quiet: going on all the same")
        return is_quiet


#: What ends a measurement before its time: somebody, the end of the link, or a worker that fails.
BreakOff = KeyboardInterrupt | LinkError | MeasurementError


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSamples:
    """What measuring a group gave."""

    samples: Mapping[str, CaseSamples]
    fingerprint: Mapping[str, str]
    #: Case ids that the record holds and no case claims, with the reason.
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    #: Operators of a graph that is not known, which nobody could enumerate; their samples are among the others.
    found: tuple[Case, ...] = ()
    peak_rss_bytes: int | None = None
    #: Replicates that were measured under contention and left out.
    n_discarded: int = 0
    #: By phase: the share of it that its operators account for.
    operator_share_ratio: Mapping[str, float] = field(default_factory=dict)
    #: By phase: the energy of a token; None where the phase is too short for the sensor, empty without one.
    joules_per_token: Mapping[str, float | None] = field(default_factory=dict)
    #: What is run, in words for the header of a report.
    description: str = ""
    #: What the engine says of itself; empty without one.
    engine_version: str = ""
    #: By sentinel: its time in each replicate, ns.
    sentinels_ns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Whether the processor's ceilings are those of what was measured.
    on_processor: bool = True
    #: What may explain the run and does not identify it; None is 'not measured'.
    covariates: Mapping[str, float | None] = field(default_factory=dict)
    #: What is shown of it beside its samples.
    observation: Observation = NO_OBSERVATION
    #: What a reader of the run should know of how it was measured.
    notes: tuple[str, ...] = ()
    #: What broke the measurement off before its end.
    broken_off_by: BreakOff | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicates:
    """The payloads of valid replicates."""

    payloads: tuple[dict[str, Any], ...]
    #: Why none of them can be trusted, where too few were valid.
    complaint: str | None
    n_discarded: int
    #: Then, those that were left out: they give rough figures, by which nothing is judged.
    rough_payloads: tuple[dict[str, Any], ...] = ()
    #: The machine's state before the first replicate.
    started_with: Mapping[str, float | None] = field(default_factory=dict)
    #: The machine around each replicate, those that were left out included.
    states: tuple[MachineState, ...] = ()
    broken_off_by: BreakOff | None = None
    #: Who competed from the beginning.
    notes: tuple[str, ...] = ()

    @property
    def shown_payloads(self) -> tuple[dict[str, Any], ...]:
        """The payloads whose figures are shown: the valid ones, and where these are too few the others."""
        return (*self.payloads, *self.rough_payloads)

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
        return tuple(filter(None, (self.complaint,)))

    @property
    def group(self) -> GroupSamples:
        """What is known of a group but for what its cases make of the payloads."""
        return GroupSamples(
            samples={},
            fingerprint={},
            peak_rss_bytes=peak_rss_bytes(self.payloads),
            n_discarded=self.n_discarded,
            sentinels_ns=self.sentinels_ns,
            covariates=self.covariates,
            observation=Observation(states=self.states),
            notes=self.notes,
            broken_off_by=self.broken_off_by,
        )


def collect_replicates(
    config: RunConfig,
    run: Callable[[], dict[str, Any]],
    complain: Callable[[Contention, Profile], str | None],
    what: str,
    progress: ProgressLine,
    *,
    group: str,
) -> Replicates:
    """Run until `n_replicates` were valid, or as many were not, or something breaks it off.

    Where the first two were left out the run says who competes, and begins anew where it waited for quiet, once.
    What was measured until a Ctrl-C, the end of the link, or a worker that fails is kept, and the group says so; a
    worker that fails at once is an error of the group.
    """
    states = StateLog(group=group, board=config.board, began_s=config.began_s)
    busy = BusyMachine(config=config, progress=progress)
    found = _Found()
    broken_off_by: BreakOff | None = None
    try:
        while len(found.valid) < config.n_replicates and len(found.complaints) < config.n_replicates:
            progress.step(what)
            states.before()
            payload = run()
            complaint = complain(Contention.from_plain(payload["contention"]), config.profile)
            states.after(payload, is_valid=complaint is None)
            found.add(payload, complaint)
            if complaint is not None:
                progress.add_steps(1)
                if found.began_busy and not busy.notes and busy.is_quiet_again(complaint):
                    found.begin_anew()
    except (KeyboardInterrupt, LinkError) as error:  # the group says so, and whoever measures groups ends the run
        broken_off_by = error
    except MeasurementError as error:
        if not found.valid:
            raise
        broken_off_by = error
    complaint = _complaint(len(found.valid), found.complaints, config.n_replicates, broken_off_by)
    return Replicates(
        payloads=tuple(found.valid),
        complaint=complaint,
        n_discarded=found.n_before_quiet + len(found.complaints),
        rough_payloads=() if complaint is None else tuple(found.left_out),
        notes=tuple(busy.notes),
        started_with=states.started_with,
        states=tuple(states.states),
        broken_off_by=broken_off_by,
    )


@dataclass(kw_only=True)
class _Found:
    """Replicates so far, those that were left out with why."""

    valid: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    #: Left out before quiet was waited for.
    n_before_quiet: int = 0

    @property
    def began_busy(self) -> bool:
        """Whether none but the first few were taken, and all were left out."""
        return not self.valid and len(self.complaints) == SEEN_AFTER

    def add(self, payload: dict[str, Any], complaint: str | None) -> None:
        """Keep a replicate."""
        if complaint is None:
            self.valid.append(payload)
        else:
            self.left_out.append(payload)
            self.complaints.append(complaint)

    def begin_anew(self) -> None:
        """Count what was left out, and forget it."""
        self.n_before_quiet += len(self.complaints)
        self.left_out.clear()
        self.complaints.clear()


def _complaint(n_valid: int, complaints: Sequence[str], n_wanted: int, broken_off_by: BreakOff | None) -> str | None:
    """Say why too few replicates are valid; None where there are enough."""
    if isinstance(broken_off_by, MeasurementError):
        return str(broken_off_by)
    if n_valid >= min(MIN_SAMPLES, n_wanted):
        return None
    if broken_off_by is not None:
        return f"{how_broken_off(broken_off_by)} after {n_valid} of {n_wanted} replicates; run again"
    return busy_text(complaints, n_valid, "replicates")


def busy_text(complaints: Sequence[str], n_valid: int, what: str) -> str:
    """Say that competition left too few of something, and what to do about it."""
    seen = f"{complaints[-1]} in {len(complaints)} of {len(complaints) + n_valid} {what}"
    return f"{seen}; free the machine and run again"


def peak_rss_bytes(payloads: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the largest resident size of any process."""
    return max((payload["peak_rss_bytes"] for payload in payloads), default=None)


def how_broken_off(error: BreakOff) -> str:
    """Say in words what ended a measurement before its time."""
    return "the link was lost" if isinstance(error, LinkError) else "interrupted"


def _known_median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
