"""What it costs to follow a run: the same work with and without recorders, in processes that take turns."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.experiments.pairs import N_TURNS
from perfsuite.measure import turns
from perfsuite.measure.contention import Contention
from perfsuite.measure.llama_plan import with_drawn_layout
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.measure.undisturbed import waiting_complaint
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.verdict.paired import PairedRatio, paired_ratio

#: What is compared: the end to end holds what lies between the phases, too.
COST_PHASES = (Phase.PREFILL, Phase.DECODE, Phase.END_TO_END)

#: Fewer pairs have no bound at 95 %.
LEAST_PAIRS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two ways to run the same work."""

    plan: LlamaPlan
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What one side costs over the other."""

    #: Time with the recorder over time without, by phase; 1.009 is 0.9 % more time for the same tokens.
    ratios: Mapping[Phase, PairedRatio]
    #: Pairs of processes that had competition and were left out.
    n_discarded: int


def measure_overhead(
    plain: Side,
    recorded: Side,
    profile: Profile,
    *,
    n_pairs: int,
    announce: Callable[[int], None] = lambda _: None,
    order: random.Random | None = None,
) -> Overhead:
    """Compare two sides in `n_pairs` pairs of fresh processes; those that had competition are taken again.

    A recorder competes with the threads that it follows, and that is what is measured. So only the plain side says
    whether there was any other competition; what a hypervisor took counts on both.

    Raises `MeasurementError`: as many pairs had competition as were asked for, or a worker failed.
    """
    pairs = _Pairs((plain, recorded), profile, order or random.Random())
    pairs.take(n_pairs, announce)
    pairs.check()
    return Overhead(ratios=overhead_ratios(pairs.records), n_discarded=len(pairs.complaints))


def overhead_ratios(pairs: Sequence[tuple[EngineRecord, EngineRecord]]) -> dict[Phase, PairedRatio]:
    """Return the ratio of each phase over pairs of a plain and a recorded process.

    A process counts with the median over its repetitions; a repetition's decode is the sum of its steps, so that what
    hits only a few of them counts as well.
    """
    ratios = {}
    for phase in COST_PHASES:
        old, new = ([_latency_ns(pair[side], phase) for pair in pairs] for side in (0, 1))
        if min(*old, *new) > 0:
            ratios[phase] = paired_ratio(old, new)
    return ratios


class _Pairs:
    """Pairs of processes that take turns."""

    def __init__(self, sides: tuple[Side, Side], profile: Profile, order: random.Random) -> None:
        self._sides = sides
        self._profiles = (profile, replace(profile, max_waiting_ratio=math.inf))
        self._order = order
        self._leader = 0
        self.records: list[tuple[EngineRecord, EngineRecord]] = []
        #: Why pairs were left out.
        self.complaints: list[str] = []

    def take(self, n_pairs: int, announce: Callable[[int], None]) -> None:
        """Take pairs until there are `n_pairs`, or as many were left out."""
        while len(self.records) < n_pairs and len(self.complaints) < n_pairs:
            announce(len(self.records))
            self._take()

    def _take(self) -> None:
        self._leader = 1 - self._leader
        plain, recorded = self._sides
        payloads = turns.run_in_turns(
            (self._drawn(plain), self._drawn(recorded)),
            n_turns=N_TURNS,
            leader=self._leader,
            own_environments=(plain.environment, recorded.environment),
        )
        if complaint := next(filter(None, map(_complaint, payloads, self._profiles)), None):
            self.complaints.append(complaint)
            return
        old, new = (EngineRecord.from_plain(payload["engine"]) for payload in payloads)
        self.records.append((old, new))

    def _drawn(self, side: Side) -> TurnsPlan:
        return TurnsPlan(llama=with_drawn_layout(side.plan, self._order))

    def check(self) -> None:
        """Refuse too few pairs."""
        if len(self.records) < LEAST_PAIRS:
            n_taken = len(self.records) + len(self.complaints)
            raise MeasurementError(
                f"{len(self.records)} of {n_taken} pairs had no competition, expected {LEAST_PAIRS} or more "
                f"({self.complaints[-1] if self.complaints else 'no more were asked for'}); "
                "free the machine and run again"
            )


def _complaint(payload: Mapping[str, Any], profile: Profile) -> str | None:
    return waiting_complaint(Contention.from_plain(payload["contention"]), profile)


def _latency_ns(record: EngineRecord, phase: Phase) -> int:
    """Return the median over repetitions of what a phase took in each, 0 where it was not run."""
    sums_ns: dict[int, int] = defaultdict(int)
    for span in record.spans:
        if span.phase is phase:
            sums_ns[span.repetition] += span.duration_ns
    return round(median(sums_ns.values())) if sums_ns else 0
