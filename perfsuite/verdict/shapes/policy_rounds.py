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
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

Floats = NDArray[np.float64]

#: Where meters of each subject come from.
SubjectMeters = Mapping[Subject, ShapeMeters]

#: Is told how many rounds are done, and of how many.
Progress = Callable[[int, int], None]

#: With fewer there is no interval, or none that says anything.
LEAST_PROCESSES = 4


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
    """
    order = random.Random(seed)
    found = np.empty((design.n_processes, len(cases)))
    n_rounds = design.n_rounds + 1
    progress(0, design.n_processes * n_rounds)
    for process in range(design.n_processes):
        logs = np.empty((n_rounds, len(cases)))
        with _fresh_meters(meters, cases) as open_meters:
            for turn in range(n_rounds):
                logs[turn] = _round(open_meters, cases, order.getrandbits(31), is_turned=_is_turned(process + turn))
                progress(process * n_rounds + turn + 1, design.n_processes * n_rounds)
        counted = logs[1:]
        levels = counted.mean(axis=1, keepdims=True)
        found[process] = np.median(counted - levels, axis=0) + levels.mean()
    return found


def _is_turned(turn: int) -> bool:
    return turn % 2 == 1


@contextmanager
def _fresh_meters(meters: SubjectMeters, cases: Sequence[ShapeCase]) -> Iterator[Mapping[Subject, ShapeMeter]]:
    subjects = dict.fromkeys(case.subject for case in cases)
    with ExitStack() as stack:
        yield {subject: stack.enter_context(meters[subject].fresh()) for subject in subjects}


def _round(
    meters: Mapping[Subject, ShapeMeter], cases: Sequence[ShapeCase], order_seed: int, *, is_turned: bool
) -> Floats:
    taken = np.empty(len(cases))
    for subject in reversed(tuple(meters)) if is_turned else tuple(meters):
        places = [place for place, case in enumerate(cases) if case.subject is subject]
        samples = meters[subject].round([cases[place] for place in places], order_seed=order_seed)
        taken[places] = np.log(np.array(samples, dtype=np.float64))
    return taken
