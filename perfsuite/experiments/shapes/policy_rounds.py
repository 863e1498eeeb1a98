"""Times of many cases from fresh processes, taken in rounds, so that what drifts moves all cases alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfsuite.errors import PolicyError
from perfsuite.measure.shapes.meter import ShapeMeter, ShapeMeters
from perfsuite.measure.shapes.sampling import launches_of_a_sample
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

Floats = NDArray[np.float64]

#: Where meters of each subject come from.
SubjectMeters = Mapping[Subject, ShapeMeters]

#: Is told how many rounds are done, and of how many.
Progress = Callable[[int, int], None]

#: With two an interval is 13 standard errors wide to either side, and says nothing.
LEAST_PROCESSES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundDesign:
    """How much is measured."""

    #: Fresh processes of each subject.
    n_processes: int = 8
    #: Rounds in each process that count; one more goes before and does not.
    n_rounds: int = 4

    def __post_init__(self) -> None:
        """Refuse what gives no interval."""
        if self.n_processes < LEAST_PROCESSES or self.n_rounds < 1:
            raise PolicyError(
                f"{self.n_processes} processes of {self.n_rounds} rounds: expected {LEAST_PROCESSES} or more of 1 or "
                "more; intervals rest on how processes differ"
            )


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


def measure_rounds(
    meters: SubjectMeters,
    cases: Sequence[ShapeCase],
    *,
    design: RoundDesign,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Floats:
    """Return the logarithm of each case's usual time, in ns, by process; shape (processes, cases).

    A round takes one sample of every case, in an order that is drawn; where there are two subjects they take turns,
    ABBA. What a round has in common with none of the others, its mean over all cases, is taken out of it, which no
    ratio of two cases feels. The usual time is the median over the rounds of a process: processes differ by how their
    buffers come to lie, and that is no matter of rounds.

    A sample is the fastest of several launches, and lies lower the more there are. One request says itself how many all
    of its samples have. Two subjects have two requests: the very first round has one launch a sample, and what all of
    them took says how many there are afterwards, for both.
    """
    order = random.Random(seed)
    n_launches = 1 if len({case.subject for case in cases}) > 1 else None
    found = np.empty((design.n_processes, len(cases)))
    n_rounds = design.n_rounds + 1
    progress(0, design.n_processes * n_rounds)
    for process in range(design.n_processes):
        logs = np.empty((n_rounds, len(cases)))
        with _fresh_meters(meters, cases) as open_meters:
            for turn in range(n_rounds):
                asked = _Round(cases=cases, order_seed=order.getrandbits(31), n_launches=n_launches)
                taken_ns = asked.taken_ns(open_meters, is_turned=_is_turned(process + turn))
                logs[turn] = np.log(taken_ns)
                if n_launches is not None and process == turn == 0:
                    n_launches = launches_of_a_sample(taken_ns.astype(int).tolist())
                progress(process * n_rounds + turn + 1, design.n_processes * n_rounds)
        counted = logs[1:]
        levels = counted.mean(axis=1, keepdims=True)
        found[process] = np.median(counted - levels, axis=0) + levels.mean()
    return found


def times_by_case(
    meters: SubjectMeters, cases: Sequence[ShapeCase], *, design: RoundDesign, seed: int, progress: Progress
) -> dict[ShapeCase, Floats]:
    """Return what `measure_rounds` does by case, each by process; nothing is measured of no cases."""
    if not cases:
        return {}
    log_ns = measure_rounds(meters, cases, design=design, seed=seed, progress=progress)
    return {case: log_ns[:, place] for place, case in enumerate(cases)}


def _is_turned(turn: int) -> bool:
    return turn % 2 == 1


@contextmanager
def _fresh_meters(meters: SubjectMeters, cases: Sequence[ShapeCase]) -> Iterator[Mapping[Subject, ShapeMeter]]:
    subjects = dict.fromkeys(case.subject for case in cases)
    with ExitStack() as stack:
        yield {subject: stack.enter_context(meters[subject].fresh()) for subject in subjects}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One sample of every case."""

    cases: Sequence[ShapeCase]
    order_seed: int
    #: Of each sample; None where each request may say.
    n_launches: int | None

    def taken_ns(self, meters: Mapping[Subject, ShapeMeter], *, is_turned: bool) -> Floats:
        taken = np.empty(len(self.cases))
        for subject in reversed(tuple(meters)) if is_turned else tuple(meters):
            places = [place for place, case in enumerate(self.cases) if case.subject is subject]
            cases = [self.cases[place] for place in places]
            taken[places] = meters[subject].round(cases, order_seed=self.order_seed, n_launches=self.n_launches)
        return taken
