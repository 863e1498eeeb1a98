"""Pairs of fresh processes that take turns, each process reduced to one sample a case."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from perfsuite.device.profile import Profile
from perfsuite.expectation.cases import Case
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Payload, Rule, Series, Witness, pairs_of
from perfsuite.measure.worker_limit import WORKER_LIMIT_S
from perfsuite.records.events import GRAPH_PHASES, EngineRecord, Phase
from perfsuite.trace.samples import ReplicateSamples, faster_half_mean, replicate_samples
from perfsuite.verdict.case_sample import sample_of
from perfsuite.verdict.sequential import STANDARD_DESIGN

#: A case is worth more pairs from this share of its phase on, or from this time on.
_WEIGHTY_RATIO = 0.01
_WEIGHTY_NS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What two processes measured side by side, turn by turn."""

    old: ReplicateSamples
    new: ReplicateSamples
    #: Every single latency of each phase on both sides, ns, as other tools would judge them.
    old_repetitions_ns: Mapping[Phase, tuple[int, ...]]
    new_repetitions_ns: Mapping[Phase, tuple[int, ...]]


def pair_series(
    board: Board,
    plans: tuple[LlamaPlan, LlamaPlan],
    profile: Profile,
    *,
    keep: Callable[[Sequence[Payload]], Pair] | None = None,
    witness: Witness | None = None,
    budget_s: float | None = None,
    extra_environment: Mapping[str, str] | None = None,
    order: random.Random | None = None,
    limit_s: float = WORKER_LIMIT_S,
) -> Series[Pair]:
    """Return the pairs of an old and a new plan, none of them taken; threads are bound on both sides or on none."""
    binds_threads = all(plan.binds_threads for plan in plans)
    old, new = (replace(plan, binds_threads=binds_threads) for plan in plans)
    return Series(
        take=pairs_of(
            board, (old, new), order=order or random.Random(), extra_environment=extra_environment, limit_s=limit_s
        ),
        rules=(Rule(profile=profile),) * 2,
        keep=keep or (lambda payloads: pair_of(*map(engine_record, payloads))),
        witness=witness or Witness(),
        budget_s=budget_s,
        n_first=STANDARD_DESIGN.screen_looks[0],
    )


def engine_record(payload: Payload) -> EngineRecord:
    """Return the record of a process of the engine."""
    return EngineRecord.from_plain(payload.get("engine"))


def pair_of(old: EngineRecord, new: EngineRecord) -> Pair:
    """Reduce the records of two processes that took turns."""
    return Pair(
        old=replicate_samples(old, faster_half_mean),
        new=replicate_samples(new, faster_half_mean),
        old_repetitions_ns=_repetitions(old),
        new_repetitions_ns=_repetitions(new),
    )


def weighty_cases(cases: Sequence[Case], pairs: Sequence[Pair]) -> frozenset[str]:
    """Return the cases that are worth more pairs: an operator by its share of its phase, a phase by that of a token.

    What takes long enough by itself is worth them whatever its share.
    """
    samples = pairs_by_case(cases, pairs)
    old_ns = {case: median(samples[case.case_id][0]) for case in cases if case.case_id in samples}
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
        old, new = (
            tuple(taken_ns for each in side if (taken_ns := sample_of(case, each)) is not None and taken_ns > 0)
            for side in ([pair.old for pair in pairs], [pair.new for pair in pairs])
        )
        if pairs and len(old) == len(new) == len(pairs):
            found[case.case_id] = old, new
    return found
