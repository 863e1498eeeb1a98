"""Reduces what one replicate recorded to one sample for each case, over its repetitions or tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from perfsuite.records.case import REST_ROLE, Case
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EMBEDDING_ROLE, GRAPH_PHASES, PROMPT_PHASES, EngineRecord, Phase, Span
from perfsuite.trace.operators import timed_operators


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedPhase:
    """One occurrence of a phase with the operators that it holds."""

    span: Span
    #: Time by role, layers summed, ns.
    role_ns: Mapping[str, int]

    @property
    def operators_ns(self) -> int:
        return sum(self.role_ns.values())

    @property
    def rest_ns(self) -> int:
        return self.span.duration_ns - self.operators_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateSamples:
    """The samples of one process."""

    phase_ns: Mapping[Phase, int]
    #: By phase, then by role; without the rest.
    operator_ns: Mapping[Phase, Mapping[str, int]]
    rest_ns: Mapping[Phase, int]

    def of_case(self, case: Case) -> int | None:
        """Return the sample of a phase or operator case, ns; None where the process did not record it."""
        assert case.phase is not None
        if case.kind == "phase":
            return self.phase_ns.get(case.phase)
        if case.role == REST_ROLE:
            return self.rest_ns.get(case.phase)
        return self.operator_ns.get(case.phase, {}).get(case.role or "")


Center = Callable[[Sequence[int]], float]


def midmean(values: Sequence[int]) -> float:
    """Return the mean of the middle half, which also has a middle where values lie at two levels, half at each.

    A kernel that follows itself may find its code in the caches, and one that follows another not: the median of such
    launches jumps between the levels.
    """
    ordered = sorted(values)
    cut = len(ordered) // 4
    middle = ordered[cut : len(ordered) - cut]
    return sum(middle) / len(middle)


def faster_half_mean(values: Sequence[int]) -> float:
    """Return the mean of the faster half, the middle one included.

    What disturbs a repetition only slows it. The mean of the faster half varies less from process to process than the
    median, and a slowdown of fewer than half of the repetitions escapes both.
    """
    fastest = sorted(values)[: (len(values) + 1) // 2]
    return sum(fastest) / len(fastest)


def replicate_samples(record: EngineRecord, center: Center = median) -> ReplicateSamples:
    """Reduce one process's record to one value for each phase and operator."""
    traced = {phase: tuple(traced_phases(record, phase)) for phase in GRAPH_PHASES}
    return reduce_phases(record, traced, center)


def reduce_phases(
    record: EngineRecord, traced: Mapping[Phase, tuple[TracedPhase, ...]], center: Center = median
) -> ReplicateSamples:
    """Reduce one process's phases, and the operators that were traced in them, to one value each."""
    durations: dict[Phase, list[int]] = defaultdict(list)
    for span in record.spans:
        durations[span.phase].append(span.duration_ns)
    phase_ns = {phase: round(center(found)) for phase, found in durations.items()}
    for phase, occurrences in traced.items():
        embedding = [each.role_ns.get(EMBEDDING_ROLE, 0) for each in occurrences]
        if not occurrences:
            continue
        without = [each.span.duration_ns - spent for each, spent in zip(occurrences, embedding, strict=True)]
        phase_ns[phase] = round(center(without))
        if phase in PROMPT_PHASES and any(embedding):
            phase_ns[Phase.EMBEDDING] = round(center(embedding))
    return ReplicateSamples(
        phase_ns=phase_ns,
        operator_ns={phase: _role_centers(found, center) for phase, found in traced.items() if found},
        rest_ns={phase: round(center([each.rest_ns for each in found])) for phase, found in traced.items() if found},
    )


def traced_phases(record: EngineRecord, phase: Phase) -> Iterator[TracedPhase]:
    """Yield each occurrence of a phase with the evaluations that fall into it; none where operators are unknown."""
    evaluations = evaluations_of(record)
    if not evaluations:
        return
    roles = [[operator.role for operator in timed_operators(graph)] for graph in record.graphs]
    durations_ns = evaluations.ends_ns - evaluations.starts_ns
    for span in (span for span in record.spans if span.phase is phase):
        role_ns: dict[str, int] = defaultdict(int)
        for each in evaluations.within(span.start_ns, span.end_ns):
            times_ns = durations_ns[evaluations.ends(each)].tolist()
            for role, time_ns in zip(roles[evaluations.graph[each]], times_ns, strict=False):
                role_ns[role] += time_ns
        yield TracedPhase(span=span, role_ns=dict(role_ns))


def misaligned_evaluations(record: EngineRecord) -> int:
    """Count evaluations whose recorded ends are not one for each timed operator of their graph."""
    evaluations = evaluations_of(record)
    n_timed = np.array([sum(node.timed for node in graph) for graph in record.graphs], np.int64)[evaluations.graph]
    return int(np.count_nonzero((evaluations.n_ends != n_timed) & (evaluations.n_ends > 0)))


def _role_centers(occurrences: tuple[TracedPhase, ...], center: Center) -> dict[str, int]:
    roles = dict.fromkeys(role for each in occurrences for role in each.role_ns)
    return {role: round(center([each.role_ns.get(role, 0) for each in occurrences])) for role in roles}
