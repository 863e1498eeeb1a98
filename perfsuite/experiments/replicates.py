"""Collects replicates that had the processors for themselves, and what a group of cases makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from statistics import median
from typing import Any, ClassVar

from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples
from perfsuite.measure.board.watching import Watched
from perfsuite.measure.competition import await_quiet
from perfsuite.measure.contention import Contention
from perfsuite.measure.probes import SENTINELS, Sentinels
from perfsuite.measure.schedule import Complain, Payload, Rule, Series, Witness
from perfsuite.records.observation import MachineState, Observation
from perfsuite.verdict.compare import MIN_SAMPLES


@dataclass(kw_only=True)
class GroupWitness(Witness):
    """Reads the machine before each run of a group, and keeps that with what was sampled while it ran."""

    remedy: ClassVar[str] = "end them, or wait for quiet (--perf-wait-quiet=5m), and run again"

    config: RunConfig
    group: str
    #: What is measured, for the line that shows how far it is.
    what: str
    progress: ProgressLine
    #: Whether to wait for quiet on a machine that is busy from the beginning, where the run was asked to.
    awaits_quiet: bool = True
    states: list[MachineState] = field(default_factory=list)
    #: The machine before the first run; nothing where there was none.
    started_with: Mapping[str, float | None] = field(default_factory=dict)
    #: Who competed from the beginning, for whoever reads the run.
    notes: list[str] = field(default_factory=list)
    _before: Mapping[str, float | None] = field(default_factory=dict)
    _at_s: float = 0.0
    _seen: str = ""

    def before(self, n_valid: int) -> None:
        """Read the machine: a run is about to start."""
        self.progress.step(self.what)
        self._at_s = round(time.monotonic() - self.config.began_s, 3)
        self._before = self.config.board.covariates()
        self.started_with = self.started_with or self._before

    def after(self, payloads: Sequence[Payload], complaint: str | None) -> None:
        """Note a run that has ended: the competition that it met, and what the samples beside it saw."""
        payload = payloads[-1]
        contention = Contention.from_plain(payload["contention"])
        seen = Watched.of(payload)
        was_throttled = self._before.get("throttled") if seen.was_throttled is None else seen.was_throttled
        self.states.append(
            MachineState(
                group=self.group,
                at_s=self._at_s,
                is_valid=complaint is None,
                load_average=self._before.get("load_average"),
                cpu_mhz=self._before.get("cpu_mhz"),
                temperature_celsius=self._before.get("temperature_celsius"),
                throttled=None if was_throttled is None else bool(was_throttled),
                battery_ratio=self._before.get("battery_ratio"),
                power_watts=self._before.get("power_watts"),
                waiting_ratio=_rounded(contention.waiting_ratio),
                steal_ratio=_rounded(contention.steal_ratio),
                least_cpu_mhz=seen.least_cpu_mhz,
                most_cpu_mhz=seen.most_cpu_mhz,
                most_celsius=seen.most_celsius,
            )
        )

    def is_quiet_again(self, complaint: str) -> bool:
        """Say who competes; return whether the machine was waited for and is quiet."""
        if not self.awaits_quiet:
            return False
        config, say = self.config, self.progress.say
        self._seen = seen = config.board.competition().text
        self.notes.append(f"the machine was busy from the beginning: {complaint}; {seen}")
        say(f"the machine is busy: {complaint}; {seen}")
        wait_s, limit_ratio = config.wait_quiet_s, config.profile.max_others_ratio
        if not wait_s:
            return False
        say(f"waiting for quiet, {wait_s:g} s at most: others below {limit_ratio * 100.0:g} %")
        is_quiet = await_quiet(config.board.competition, limit_ratio=limit_ratio, wait_s=wait_s)
        say("quiet: beginning anew" if is_quiet else "it did not become quiet")
        return is_quiet

    def goes_on(self) -> None:
        """Say so, where it was said who competes."""
        if self.awaits_quiet:
            hint = " all the same" if self.config.wait_quiet_s else "; --perf-wait-quiet=5m would wait for quiet"
            self.progress.say(f"going on{hint}")

    def competitors(self) -> str:
        """Say who competes: as it was seen a moment ago, or now."""
        return self._seen or self.config.board.competition().text

    def taken(self, series: Series[Any]) -> GroupSamples:
        """Return what is known of the group when a series has ended."""
        return GroupSamples(
            n_discarded=series.n_before_quiet + len(series.complaints),
            observation=Observation(states=tuple(self.states)),
            notes=tuple(self.notes),
            broken_off_by=series.broken_off_by,
        )


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicates:
    """The payloads of valid replicates."""

    payloads: tuple[Payload, ...]
    #: What is known of their group beside what its cases make of the payloads.
    group: GroupSamples
    #: Why none of them can be trusted, where too few were valid.
    problems: tuple[str, ...] = ()
    #: Then, those that were left out: they give rough figures, by which nothing is judged.
    rough_payloads: tuple[Payload, ...] = ()

    @property
    def shown_payloads(self) -> tuple[Payload, ...]:
        """The payloads whose figures are shown: the valid ones, and where these are too few the others."""
        return (*self.payloads, *self.rough_payloads)


def collect_replicates(
    config: RunConfig,
    run: Callable[[], Payload],
    complain: Complain,
    what: str,
    progress: ProgressLine,
    *,
    group: str,
    budget_s: float | None = None,
) -> Replicates:
    """Run until `n_replicates` were valid, or as many were not, or time is up, or something breaks it off.

    Where the first two were left out the run says who competes, and begins anew where it waited for quiet, once.
    What was measured until a Ctrl-C, the end of the link, or a worker that fails is kept, and the group says so; a
    worker that fails at once is an error of the group.
    """
    witness = _Witness(config=config, group=group, what=what, progress=progress)
    series = Series(
        take=lambda: (run(),),
        rules=(Rule(profile=config.profile, complain=complain),),
        keep=itemgetter(0),
        witness=witness,
        budget_s=budget_s,
        n_first=(n_least := min(MIN_SAMPLES, config.n_replicates)),
    )
    with series.broken_off():
        series.extend(config.n_replicates, most_left_out=config.n_replicates)
    is_enough = len(series.valid) >= n_least
    complaint = series.shortage("replicates", is_enough=is_enough, n_wanted=config.n_replicates)
    payloads = tuple(series.valid)
    return Replicates(
        payloads=payloads,
        problems=tuple(filter(None, (complaint,))),
        rough_payloads=() if complaint is None else tuple(witness.left_out),
        group=replace(
            witness.taken(series),
            peak_rss_bytes=peak_rss_bytes(payloads),
            sentinels_ns=_sentinels_ns(payloads),
            covariates={**witness.started_with, **_competition(payloads)},
        ),
    )


def _sentinels_ns(payloads: Sequence[Payload]) -> dict[str, tuple[int, ...]]:
    """Return, by sentinel, its time in each replicate that has measured it."""
    found = [Sentinels.from_plain(each["sentinels"]) for each in payloads if "sentinels" in each]
    return {name: tuple(each.times_ns[name] for each in found) for name in SENTINELS} if found else {}


def _competition(payloads: Sequence[Payload]) -> dict[str, float | None]:
    """Return the competition in the middle replicate."""
    contentions = [Contention.from_plain(payload["contention"]) for payload in payloads]
    return {
        "waiting_ratio": known_median([each.waiting_ratio for each in contentions]),
        "steal_ratio": known_median([each.steal_ratio for each in contentions]),
    }


@dataclass(kw_only=True)
class _Witness(GroupWitness):
    """Keeps the replicates that were left out, too, and plans for as many more."""

    left_out: list[Payload] = field(default_factory=list)

    def after(self, payloads: Sequence[Payload], complaint: str | None) -> None:
        """Note a replicate."""
        super().after(payloads, complaint)
        if complaint is not None:
            self.left_out += payloads
            self.progress.add_steps(1)

    def is_quiet_again(self, complaint: str) -> bool:
        """Forget what was left out where one begins anew."""
        is_quiet = super().is_quiet_again(complaint)
        if is_quiet:
            self.left_out.clear()
        return is_quiet


def peak_rss_bytes(payloads: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the largest resident size of any process."""
    return max((payload["peak_rss_bytes"] for payload in payloads), default=None)


def known_median(values: Sequence[float | None]) -> float | None:
    """Return the median of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return median(known) if known else None
