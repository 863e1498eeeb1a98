"""Says whether a run was throttled: whether a fixed piece of work took longer in the course of it.

The rule is that of Android's benchmark library, which holds a fixed loop against the one at the beginning and takes
more than 10 % as throttling. Replicates are short and machines are shared, so four things are different here:

- Not single replicates are compared but consecutive ones, a third of the run and two at least: the fastest of them is
  compared with the middle one of the first. A replicate in which the sentinel was disturbed, by however much, says
  nothing of the clock; throttling lasts, and then even the fastest is slow.
- The `compute` sentinel counts for every case. What throttling lowers is the clock, and that sentinel follows it,
  within 5 % of itself. Up to three replicates are too few to see a stretch; there the ceiling of arithmetic after the
  last one is compared with that before the first. Each is the best of many repetitions: no short disturbance counts.
- The `memory` sentinel counts for cases that wait for memory, and only where the case itself was slower by as much in
  the same replicates. Alone it is no evidence: in a run on a shared machine it took 2.4 times as long from the eighth
  replicate of ten on, a decode step 8 % less than before, and the copy of the logits twice as long; single ones reached
  32 times the middle one. Where both agree, the case was measured on two machines, whoever made them two.
- Both scatter more than the clock does, so that chance makes them agree. Here a stretch is three replicates at least,
  and its fastest one is compared with those before it in the first half of the run: it must be slower than the time
  that half of them, two at least, have reached. Fewer than six replicates cannot tell. Simulated, 40 000 cases each of
  6 to 20 replicates: where the sentinel scatters by 30 % and the case by 10 %, each on its own, 0.05 to 0.7 % of the
  cases are refused (0.5 % of those of ten), and up to 2.1 % where the case scatters by 20 %. Where both are 30 % slower
  from the middle on, all are found if both scatter by 2 %; 67 to 86 % if the case scatters by 5 % and the sentinel by
  10 %; 43 to 72 % if both do by 10 %; 10 to 36 % if the sentinel does by 30 %.

What was slow from the first replicate on is compared with the stored sessions (`perfsuite.verdict.drift`).

Pairs need neither: their two sides take turns in the order ABBA, so a clock that drops slows both, and a pair in which
it drops is one among many for a rank test. Their verdict stands, and the drop is reported, for their times are those of
two machines. The fixed work is the old side's: its plan is the same in every pair.

*Source*: androidx.benchmark, ThrottleDetector: a baseline is measured at the start, and more than 10 % above it is
throttled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

#: More time than at the beginning, as a part of that, that passes for noise.
LIMIT_RATIO = 0.10

#: The sentinels that follow the clock, and memory.
COMPUTE, MEMORY = "compute", "memory"

#: So many replicates see by themselves what happens in the last half of them.
FEWEST_ALONE = 4

_FEWEST_TOGETHER, _FEWEST_FOR_MEMORY = 2, 3

_LIMIT = f"limit {LIMIT_RATIO * 100:g} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Consecutive times that are all longer than those at the beginning."""

    first: int
    n_together: int
    #: How many at the beginning they are held against.
    n_first: int
    #: How much longer the fastest of them is, as a part of the beginning.
    slower_ratio: float

    @property
    def text(self) -> str:
        """Which they are, counted from 1."""
        return f"{self.first + 1} to {self.first + self.n_together}"


def throttling_complaint(
    sentinels_ns: Mapping[str, Sequence[int]], ends_ns: tuple[int, int] | None = None
) -> str | None:
    """Say in one line why the cases of a run cannot be used; None where it kept its speed, or that cannot be known.

    `sentinels_ns` has by sentinel its time in each replicate, in the order of time; `ends_ns` the same work at the
    ceilings before the first and after the last replicate, which counts where these are few. Only the two are compared,
    for a ceiling is the best of many repetitions, and a sentinel their median.
    """
    times_ns = sentinels_ns.get(COMPUTE, ())
    slow = max(_slow_stretches(times_ns), key=lambda each: each.slower_ratio, default=None)
    if slow is not None:
        where = f"in replicates {slow.text} of {len(times_ns)} than in the first {slow.n_first}"
        return _throttled(slow.slower_ratio, where)
    if ends_ns is None or len(times_ns) >= FEWEST_ALONE or ends_ns[1] <= ends_ns[0] * (1.0 + LIMIT_RATIO):
        return None
    return _throttled(ends_ns[1] / ends_ns[0] - 1.0, "after the last replicate than before the first")


def _throttled(slower_ratio: float, where: str) -> str:
    told = f"throttled: the fixed work took {slower_ratio * 100:.0f} % longer {where} ({_LIMIT})"
    return f"{told}; cool the device or lower its clock, and run again"


def memory_complaint(sentinels_ns: Mapping[str, Sequence[int]], samples_ns: Sequence[int]) -> str | None:
    """Say in one line why a case that waits for memory cannot be used; None where it can, or that cannot be known.

    `samples_ns` is the case's time in each replicate; judged is where each replicate has both, and from six of them on.
    """
    times_ns = sentinels_ns.get(MEMORY, ())
    if len(times_ns) != len(samples_ns):
        return None
    memory = {each.first: each for each in _surely_slow_stretches(times_ns)}
    both = [(each, memory[each.first]) for each in _surely_slow_stretches(samples_ns) if each.first in memory]
    if not both:
        return None
    case, sentinel = max(both, key=lambda each: each[0].slower_ratio)
    return (
        f"memory slowed down: in replicates {case.text} of {len(samples_ns)} the fixed reading took "
        f"{sentinel.slower_ratio * 100:.0f} % longer than in the first {case.n_first}, and this case "
        f"{case.slower_ratio * 100:.0f} % ({_LIMIT}); cool the device or free the machine, and run again"
    )


def is_telling(sentinels_ns: Mapping[str, Sequence[int]], *, has_ends: bool = False) -> bool:
    """Whether these sentinels, or the ceilings at both ends, can show that a run was throttled."""
    return has_ends or len(sentinels_ns.get(COMPUTE, ())) >= FEWEST_ALONE


def pairs_note(old_ns: Sequence[int]) -> str | None:
    """Say in one line that the device did not keep its speed over pairs, by the old side's times; None where it did."""
    slow = _slow_stretches(old_ns)
    if not slow:
        return None
    pairs = f"pairs {slow[0].first + 1} to {slow[-1].first + slow[-1].n_together} of {len(old_ns)}"
    told = f"the old side took up to {max(each.slower_ratio for each in slow) * 100:.0f} % longer in {pairs}"
    return (
        f"{told} than in the first {slow[0].n_first} ({_LIMIT}): the device was throttled or shared; "
        "ratios hold, for both sides take turns, and times are those of two speeds"
    )


def _slow_stretches(times_ns: Sequence[int]) -> list[Stretch]:
    """Return the stretches whose fastest time is beyond the limit; nothing where there are too few times for any."""
    n_together = max(_FEWEST_TOGETHER, len(times_ns) // 3)
    if len(times_ns) < FEWEST_ALONE:
        return []
    first_ns = median_low(times_ns[:n_together])
    return [
        Stretch(first=at, n_together=n_together, n_first=n_together, slower_ratio=slower_ratio)
        for at in range(len(times_ns) - n_together + 1)
        if (slower_ratio := _slower_ratio(times_ns[at : at + n_together], first_ns)) is not None
    ]


def _surely_slow_stretches(times_ns: Sequence[int]) -> list[Stretch]:
    """Return the stretches beyond the limit of what scatters: they are longer, and compared with more before them."""
    n_together = max(_FEWEST_FOR_MEMORY, len(times_ns) // 3)
    found = []
    for at in range(_FEWEST_FOR_MEMORY, len(times_ns) - n_together + 1):
        n_first = min(at, (len(times_ns) + 1) // 2)
        first_ns = sorted(times_ns[:n_first])[-max(2, n_first // 2)]
        slower_ratio = _slower_ratio(times_ns[at : at + n_together], first_ns)
        if slower_ratio is not None:
            found.append(Stretch(first=at, n_together=n_together, n_first=n_first, slower_ratio=slower_ratio))
    return found


def _slower_ratio(times_ns: Sequence[int], first_ns: int) -> float | None:
    """Return how much longer the fastest of some took; None where that is within the limit."""
    fastest_ns = min(times_ns)
    return fastest_ns / first_ns - 1.0 if fastest_ns > first_ns * (1.0 + LIMIT_RATIO) else None
