"""Whether the device kept its speed while a group was measured: what its sentinels and ceilings show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, variance

from perfsuite.experiments.samples import GroupSamples
from perfsuite.records.outcome import CaseSamples
from perfsuite.verdict.drift import sentinel_of

#: More time than in the first half, as a part of that, that passes for noise.
LIMIT_RATIO = 0.10

#: The sentinels that follow the clock, and memory.
COMPUTE, MEMORY = "compute", "memory"

#: Fewer replicates say nothing; from so many on the slowest of each half is capped.
FEWEST, _FEWEST_TO_CAP = 6, 8

#: The error of the test, one-sided.
_ERROR = 0.0005

_TOLD = f"limit {LIMIT_RATIO * 100:g} %, chance below 1 in 400"


def slowdown_ratio(times_ns: Sequence[int]) -> float | None:
    """Return how much longer the last half took, as a part of the first; None where that may be chance or passes."""
    from scipy.special import stdtrit  # late, for its import takes longer than most commands

    n_last = len(times_ns) // 2
    if len(times_ns) < FEWEST:
        return None
    ordered = sorted(map(_log, times_ns[:-n_last])), sorted(map(_log, times_ns[-n_last:]))
    n_capped = 1 if len(times_ns) >= _FEWEST_TO_CAP else 0
    first, last = (half[: len(half) - n_capped] + [half[-1 - n_capped]] * n_capped for half in ordered)
    pooled = math.fsum(variance(half) * (len(half) - 1) for half in (first, last)) / (len(times_ns) - 2)
    reach = -float(stdtrit(len(times_ns) - 2 - 2 * n_capped, _ERROR))
    change = fmean(last) - fmean(first)
    is_sure = change > reach * math.sqrt(pooled * (1 / len(first) + 1 / len(last)))
    return math.expm1(change) if is_sure and change > math.log1p(LIMIT_RATIO) else None


def _log(time_ns: int) -> float:
    return math.log(max(1, time_ns))


def throttling_complaint(sentinels_ns: Mapping[str, Sequence[int]]) -> str | None:
    """Say in one line why the cases of a run cannot be used; None where it kept its speed, or that cannot be known.

    `sentinels_ns` has by sentinel its time in each replicate, in the order of time.
    """
    times_ns = sentinels_ns.get(COMPUTE, ())
    if (slower := slowdown_ratio(times_ns)) is None:
        return None
    told = f"throttled: the fixed work took {slower * 100:.0f} % longer in the last {len(times_ns) // 2}"
    return f"{told} of {len(times_ns)} replicates ({_TOLD}); cool the device or lower its clock, and run again"


def memory_complaint(sentinels_ns: Mapping[str, Sequence[int]], samples_ns: Sequence[int]) -> str | None:
    """Say in one line why a case that waits for memory cannot be used; None where it can, or that cannot be known.

    `samples_ns` is the case's time in each replicate; judged is where each replicate has both.
    """
    times_ns = sentinels_ns.get(MEMORY, ())
    if len(times_ns) != len(samples_ns):
        return None
    memory, case = slowdown_ratio(times_ns), slowdown_ratio(samples_ns)
    if memory is None or case is None:
        return None
    where = f"in the last {len(times_ns) // 2} of {len(times_ns)} replicates"
    told = f"memory slowed down: {where} the fixed reading took {memory * 100:.0f} % longer"
    return f"{told}, and this case {case * 100:.0f} % ({_TOLD}); cool the device or free the machine, and run again"


def speed_note(times_ns: Sequence[int], ends_ns: tuple[int, int] | None) -> str | None:
    """Say what the ceilings before the first and after the last replicate show, or that too little is known; or None.

    They are two values, whose error nobody knows: nothing is judged by them.
    """
    if ends_ns is not None and ends_ns[1] > ends_ns[0] * (1.0 + LIMIT_RATIO):
        slower = f"{(ends_ns[1] / ends_ns[0] - 1.0) * 100:.0f} % longer"
        return f"at the ceilings the fixed work took {slower} after the run than before it: perhaps it was throttled"
    if ends_ns is None and len(times_ns) < FEWEST:
        return f"{len(times_ns)} replicates are too few to tell whether the device kept its speed"
    return None


def pairs_note(old_ns: Sequence[int]) -> str | None:
    """Say in one line that the device did not keep its speed over pairs, by the old side's times; None where it did."""
    if (slower := slowdown_ratio(old_ns)) is None:
        return None
    where = f"in the last {len(old_ns) // 2} of {len(old_ns)} pairs"
    return (
        f"the old side took {slower * 100:.0f} % longer {where} ({_TOLD}): throttled or shared; ratios hold, as both "
        "sides take turns, and times are of two speeds"
    )


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


def _judged(samples: CaseSamples, throttled: str | None, sentinels_ns: Mapping[str, Sequence[int]]) -> CaseSamples:
    is_bound_by_memory = sentinel_of(samples.case_id) == MEMORY
    memory = memory_complaint(sentinels_ns, samples.samples_ns) if is_bound_by_memory else None
    return replace(samples, problems=(*samples.problems, *filter(None, (throttled, memory))))
