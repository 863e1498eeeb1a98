"""Survey a processor's ceilings: bandwidth over a ladder of working sets and arithmetic, by number of threads."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, COMPUTE_KINDS, CPU, Ceiling, Rate, Resource
from perfsuite.measure.probes import Probes, largest_working_set

#: Rounds over everything, so that what disturbs a minute does not hit one ceiling only.
N_ROUNDS = 5
#: The ladder begins here and doubles; for other numbers of threads than the run's own it quadruples.
_LEAST_BYTES = 1 << 15
_MAIN_STEP, _OTHER_STEP = 2, 4
#: The ladder ends at so many times the last cache, of which little is left in it then.
MEMORY_OVER_CACHE = 16
#: Parts of a round's time: each rung of the ladder counts one, memory and each type of number several.
_RUNG_WEIGHT, _MEMORY_WEIGHT, _COMPUTE_WEIGHT = 1, 6, 2

_UNSUPPORTED = "this processor has no multiply-add of {} that the probe knows"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """What is measured once a round."""

    n_threads: int
    working_set_bytes: int | None
    #: A type of number; None for a bandwidth.
    compute: str | None
    weight: int


def survey_cpu(library: ctypes.CDLL, *, n_threads: int, thread_counts: Sequence[int], budget_ms: int) -> list[Ceiling]:
    """Measure the ceilings of this machine's processor in about `budget_ms`.

    The ladder of working sets is fine for `n_threads`, and coarse for the other `thread_counts`. First use of memory
    may overrun the budget by a few seconds.

    Raises `MeasurementError` where a probe could not get its memory or threads.
    """
    slots = [*_slots(n_threads, _MAIN_STEP)]
    for other in thread_counts:
        if other != n_threads:
            slots += _slots(other, _OTHER_STEP)
    unit_ms = budget_ms / N_ROUNDS / sum(slot.weight for slot in slots)
    rounds = [[_measure(library, slot, unit_ms * slot.weight) for slot in slots] for _ in range(N_ROUNDS)]
    return [
        ceiling
        for slot, rates in zip(slots, zip(*rounds, strict=True), strict=True)
        for ceiling in _ceilings(slot, rates)
    ]


def thread_counts(n_processors: int) -> tuple[int, ...]:
    """Return the powers of two below the number of processors, and that number."""
    powers = (1 << power for power in range(n_processors.bit_length()))
    return tuple(sorted({n_processors, *(count for count in powers if count <= n_processors)}))


def _slots(n_threads: int, step: int) -> Iterator[_Slot]:
    memory_bytes = largest_working_set(n_threads, MEMORY_OVER_CACHE)
    rung_bytes = _LEAST_BYTES * n_threads
    while rung_bytes < memory_bytes:
        yield _Slot(n_threads=n_threads, working_set_bytes=rung_bytes, compute=None, weight=_RUNG_WEIGHT)
        rung_bytes *= step
    yield _Slot(n_threads=n_threads, working_set_bytes=memory_bytes, compute=None, weight=_MEMORY_WEIGHT)
    for kind in COMPUTE_KINDS:
        yield _Slot(n_threads=n_threads, working_set_bytes=None, compute=kind, weight=_COMPUTE_WEIGHT)


def _measure(library: ctypes.CDLL, slot: _Slot, budget_ms: float) -> dict[str, float]:
    """Return the best rate of each kind in one round."""
    probes = Probes(library, n_threads=slot.n_threads, budget_ms=max(3, round(budget_ms)), pinned=None)
    if slot.working_set_bytes is not None:
        rates = probes.bandwidth_rates(slot.working_set_bytes, 1.0)
        return {kind: float(getattr(rates, kind).best_per_s) for kind in BANDWIDTH_KINDS}
    assert slot.compute is not None
    rate = probes.compute_rate(slot.compute, 1.0)
    return {slot.compute: float(rate.best_per_s)} if rate else {}


def _ceilings(slot: _Slot, rounds: Sequence[dict[str, float]]) -> Iterator[Ceiling]:
    for kind in BANDWIDTH_KINDS if slot.compute is None else (slot.compute,):
        bests = [each[kind] for each in rounds if kind in each]
        rate = None
        if bests:
            rate = Rate(best_per_s=max(bests), median_per_s=statistics.median(bests), n_rounds=len(bests))
        yield Ceiling(
            processor=CPU,
            resource=Resource.BANDWIDTH if slot.compute is None else Resource.COMPUTE,
            kind=kind,
            n_threads=slot.n_threads,
            working_set_bytes=slot.working_set_bytes,
            rate=rate,
            missing="" if rate else _UNSUPPORTED.format(kind),
        )
