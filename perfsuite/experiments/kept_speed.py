"""Says of a group that was measured whether the device kept its speed, as `perfsuite.measure.throttling` judges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perfsuite.experiments.pairs import Pair
from perfsuite.experiments.replicates import GroupSamples
from perfsuite.measure.probes import COMPUTE_FLOPS
from perfsuite.measure.throttling import MEMORY, memory_complaint, pairs_note, speed_note, throttling_complaint
from perfsuite.records.events import GRAPH_PHASES
from perfsuite.records.outcome import CaseSamples
from perfsuite.units import NS_PER_S
from perfsuite.verdict.drift import sentinel_of


def with_speed_problems(group: GroupSamples, ends_ns: tuple[int, int] | None = None) -> GroupSamples:
    """Return the group with what its sentinels say of its cases: the problems, and where they cannot say any.

    `ends_ns` is what the compute sentinel would take at the ceilings before and after all groups.
    """
    if not group.sentinels_ns:
        return group
    throttled = throttling_complaint(group.sentinels_ns)
    note = None if throttled else speed_note(max(group.sentinels_ns.values(), key=len), ends_ns)
    return replace(
        group,
        samples={
            case_id: _judged(samples, throttled, group.sentinels_ns) for case_id, samples in group.samples.items()
        },
        notes=(*group.notes, *filter(None, [note])),
    )


def ceiling_time_ns(flops_per_s: float) -> int:
    """Return what the compute sentinel would take at a ceiling."""
    return max(1, round(COMPUTE_FLOPS * NS_PER_S / flops_per_s))


def pairs_speed_notes(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Tell where pairs were not measured at one speed, by the old side's prompt, or its decode where it has none."""
    for phase in GRAPH_PHASES:
        if pairs and all(phase in pair.old.phase_ns for pair in pairs):
            note = pairs_note([pair.old.phase_ns[phase] for pair in pairs])
            return () if note is None else (note,)
    return ()


def _judged(samples: CaseSamples, throttled: str | None, sentinels_ns: Mapping[str, Sequence[int]]) -> CaseSamples:
    is_bound_by_memory = sentinel_of(samples.case_id) == MEMORY
    memory = memory_complaint(sentinels_ns, samples.samples_ns) if is_bound_by_memory else None
    return replace(samples, problems=(*samples.problems, *filter(None, (throttled, memory))))
