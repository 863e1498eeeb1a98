"""Pairs of fresh processes that take turns, each process reduced to one sample a case."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from perfsuite.device.profile import Profile
from perfsuite.expectation.cases import GRAPH_PHASES, Case
from perfsuite.measure import turns
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.competition import SEEN_AFTER
from perfsuite.measure.contention import Contention
from perfsuite.measure.llama_plan import with_drawn_layout
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.measure.undisturbed import waiting_complaint
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import ReplicateSamples, faster_half_mean, replicate_samples
from perfsuite.verdict.case_sample import sample_of
from perfsuite.verdict.sequential import STANDARD_DESIGN

#: Turns of each process of a pair. More of them cost as much time as more pairs do, and only pairs average out what a
#: process draws once (where its pages lie); fewer leave a prefill with too few repetitions.
#: Source: docs/results.md, 'What a pair is made of'.
N_TURNS = 4

#: A case is worth more pairs from this share of its phase on, or from this time on.
_WEIGHTY_RATIO = 0.01
_WEIGHTY_NS = 100_000

#: What a run of pairs may take beyond its budget to confirm what it has found, budget included: a change that is seen
#: and not confirmed is worth nothing.
CONFIRM_RATIO = 1.5

OLD, NEW = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What two processes measured side by side, turn by turn."""

    old: ReplicateSamples
    new: ReplicateSamples
    #: Every single latency of each phase on both sides, ns, as other tools would judge them.
    old_repetitions_ns: Mapping[Phase, tuple[int, ...]]
    new_repetitions_ns: Mapping[Phase, tuple[int, ...]]


@dataclass(kw_only=True)
class PairRun:
    """A run of pairs that can be extended; pairs that had competition are left out and taken again."""

    #: The old and the new side.
    plans: tuple[LlamaPlan, LlamaPlan]
    profile: Profile
    #: Where the pairs run; None is this machine.
    board: Board | None = None
    #: Time for looking for changes, s; confirming them may take half as long again. None is without limit.
    budget_s: float | None = None
    extra_environment: Mapping[str, str] = field(default_factory=dict)
    order: random.Random = field(default_factory=random.Random)
    #: Called before each pair with the number of valid ones so far.
    announce: Callable[[int], None] = lambda n_pairs: None
    #: Called after each pair with what its new side sent, and its record; None where it is left out.
    witness: Callable[[Mapping[str, Any], EngineRecord | None], None] = lambda payload, record: None
    #: Called once, where the first `SEEN_AFTER` pairs were all left out, with why; returns whether to begin anew.
    is_quiet_again: Callable[[str], bool] = lambda complaint: False
    pairs: list[Pair] = field(default_factory=list)
    #: Why pairs were left out.
    complaints: list[str] = field(default_factory=list)
    #: The first record of each side, for its graph.
    first_records: tuple[EngineRecord, EngineRecord] | None = None
    peak_rss_bytes: int = 0
    _started_s: float = field(default_factory=time.monotonic)
    _leader: int = OLD
    _was_busy: bool = False

    def extend(self, n_pairs: int) -> Sequence[Pair]:
        """Take pairs until there are `n_pairs`; fewer come back when as many again had competition, or time is up."""
        while len(self.pairs) < n_pairs and len(self.complaints) < n_pairs and not self._is_over():
            self.announce(len(self.pairs))
            self._take()
        return self.pairs[:n_pairs]

    def _is_over(self) -> bool:
        """Whether time is up; a device that is slow, and not busy, has its first look in any case."""
        if self.budget_s is None:
            return False
        if len(self.pairs) < STANDARD_DESIGN.screen_looks[0]:
            return bool(self.complaints) and self.elapsed_s > self.budget_s
        return self.elapsed_s > self.budget_s * CONFIRM_RATIO

    def may_extend(self, n_pairs: int, *, share_ratio: float = 1.0) -> bool:
        """Whether the budget, or this share of it, allows for `n_pairs` in all, at the pace so far."""
        if self.budget_s is None or not self.pairs:
            return True
        return self.elapsed_s / len(self.pairs) * n_pairs <= self.budget_s * share_ratio

    def may_confirm(self, n_pairs: int) -> bool:
        """Whether so many pairs in all may be taken to confirm what was found."""
        return self.may_extend(n_pairs, share_ratio=CONFIRM_RATIO)

    @property
    def elapsed_s(self) -> float:
        """Time since the run was begun."""
        return time.monotonic() - self._started_s

    def _take(self) -> None:
        self._leader = self._next_leader()
        run_in_turns = turns.run_in_turns if self.board is None else self.board.run_in_turns
        payloads = run_in_turns(
            (self._drawn(OLD), self._drawn(NEW)),
            n_turns=N_TURNS,
            leader=self._leader,
            extra_environment=self.extra_environment,
        )
        complaint = next(filter(None, (self._complaint(payload) for payload in payloads)), None)
        if complaint:
            self.complaints.append(complaint)
            self.witness(payloads[NEW], None)
            if not self.pairs and len(self.complaints) == SEEN_AFTER and not self._was_busy:
                self._was_busy = True
                if self.is_quiet_again(complaint):
                    self.complaints.clear()
                    self._started_s = time.monotonic()
            return
        self.peak_rss_bytes = max(self.peak_rss_bytes, *(payload["peak_rss_bytes"] for payload in payloads))
        old, new = (EngineRecord.from_plain(payload["engine"]) for payload in payloads)
        if self.first_records is None:
            self.first_records = old, new
        self.witness(payloads[NEW], new)
        self.pairs.append(
            Pair(
                old=replicate_samples(old, faster_half_mean),
                new=replicate_samples(new, faster_half_mean),
                old_repetitions_ns=_repetitions(old),
                new_repetitions_ns=_repetitions(new),
            )
        )

    def _drawn(self, side: int) -> TurnsPlan:
        """Return the plan of one process; threads are bound on both sides or on none."""
        binds_threads = all(plan.binds_threads for plan in self.plans)
        plan = replace(self.plans[side], binds_threads=binds_threads)
        return TurnsPlan(llama=with_drawn_layout(plan, self.order))

    def _next_leader(self) -> int:
        """Draw who leads the first pair of two; the other one leads the second."""
        n_taken = len(self.pairs) + len(self.complaints)
        return self.order.randrange(2) if n_taken % 2 == 0 else 1 - self._leader

    def _complaint(self, payload: Mapping[str, Any]) -> str | None:
        return waiting_complaint(Contention.from_plain(payload["contention"]), self.profile)


def weighty_cases(cases: Sequence[Case], pairs: Sequence[Pair]) -> frozenset[str]:
    """Return the cases that are worth more pairs: an operator by its share of its phase, a phase by that of a token.

    What takes long enough by itself is worth them whatever its share.
    """
    samples = pairs_by_case(cases, pairs)
    old_ns = {case: median(samples[case.case_id][OLD]) for case in cases if case.case_id in samples}
    wholes = {case.phase: whole for case, whole in old_ns.items() if case.kind == "phase"}
    token_ns = min((wholes[phase] for phase in GRAPH_PHASES if phase in wholes), default=0)
    return frozenset(
        case.case_id
        for case, spent_ns in old_ns.items()
        if spent_ns >= _WEIGHTY_NS
        or spent_ns >= _WEIGHTY_RATIO * (token_ns if case.kind == "phase" else wholes.get(case.phase, token_ns))
    )


def _repetitions(record: EngineRecord) -> dict[Phase, tuple[int, ...]]:
    durations: dict[Phase, list[int]] = defaultdict(list)
    for span in record.spans:
        durations[span.phase].append(span.duration_ns)
    return {phase: tuple(found) for phase, found in durations.items()}


def pairs_by_case(cases: Sequence[Case], pairs: Sequence[Pair]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return old and new samples, ns, of each case that every process measured with a positive time."""
    found = {}
    for case in cases:
        old = [sample_of(case, pair.old) for pair in pairs]
        new = [sample_of(case, pair.new) for pair in pairs]
        if pairs and all(sample is not None and sample > 0 for sample in (*old, *new)):
            found[case.case_id] = (
                tuple(sample for sample in old if sample is not None),
                tuple(sample for sample in new if sample is not None),
            )
    return found
