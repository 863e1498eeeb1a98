"""Says whether a run was throttled: whether a fixed piece of work took longer in the last half of its replicates.

Student's t test on logarithms holds the last half against the first, and the estimate must be beyond the limit as well.
From eight replicates on the slowest of each half counts as the second slowest, with a degree of freedom less for each:
throttling lasts, and one that was disturbed says nothing of the clock. Fewer than six replicates say nothing.

Simulated, 200 000 unchanged runs each of 6 to 30 replicates that scatter by 2, 5, 10 or 30 %, with no, each thirtieth
or each fifth of them 1.2 to 20 times as long besides: 0.22 % at most are called throttled, none at 2 % without such. A
clock that drops by a fifth half way is found in 79 to 99 % where they scatter by 2 % and each thirtieth is disturbed;
at 5 % in 16 % of 6 replicates, 52 % of 8 and 87 to 97 % of 10 to 30. What is slow in the middle or at the very end
alone is not found.

The `compute` sentinel counts for every case: what throttling lowers is the clock, and that sentinel follows it. The
`memory` sentinel counts for a case that waits for memory, and that the same test finds slower as well: by itself it
shows a neighbour who reads, which not every case feels. What was slow from the first replicate on is compared with the
stored sessions (`perfsuite.verdict.drift`). In pairs both sides take turns, so that a drop falls on both:
the times of the old side, whose plan is the same in each pair, show it, and nothing is judged by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

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
