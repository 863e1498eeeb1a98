"""Times of many cases from fresh processes, taken in rounds, so that what drifts moves all cases alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfsuite.errors import MeasurementError
from perfsuite.experiments.shapes.policy_record import MeasuredSubject
from perfsuite.measure.shapes.meter import ShapeMeter, ShapeMeters
from perfsuite.measure.shapes.sampler import launches_of_a_sample
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

Floats = NDArray[np.float64]

SubjectMeters = Mapping[Subject, ShapeMeters]

#: Is told how many rounds are done, and of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundDesign:
    """How much is measured."""

    n_processes: int = 8
    #: Rounds in each process that count; one more goes before and does not.
    n_rounds: int = 4


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


def measure_rounds(
    meters: SubjectMeters,
    cases: Sequence[ShapeCase],
    *,
    design: RoundDesign,
    seed: int = 0,
    progress: Progress = no_progress,
) -> dict[ShapeCase, Floats]:
    """Return the logarithm of each case's usual time, in ns, by process; nothing is measured of no cases.

    A round takes one sample of every case, in an order that is drawn; where there are two subjects they take turns,
    ABBA. What a round has in common with none of the others, its mean over all cases, is taken out of it, which no
    ratio of two cases feels. The usual time is the median over the rounds of a process: processes differ by how their
    buffers come to lie, and that is no matter of rounds.

    A sample is the fastest of several launches, and lies lower the more there are. One request says itself how many all
    of its samples have. Two subjects have two requests: the very first round has one launch a sample, and what all of
    them took says how many there are afterwards, for both.
    """
    if not cases:
        return {}
    order = random.Random(seed)
    n_launches = 1 if len({case.subject for case in cases}) > 1 else None
    found = np.empty((design.n_processes, len(cases)))
    n_rounds = design.n_rounds + 1
    progress(0, design.n_processes * n_rounds)
    for process in range(design.n_processes):
        logs = np.empty((n_rounds, len(cases)))
        with fresh_meters(meters, (case.subject for case in cases)) as open_meters:
            for turn in range(n_rounds):
                in_turn = tuple(open_meters.items())[:: -1 if (process + turn) % 2 else 1]
                taken_ns = _taken_ns(in_turn, cases, order_seed=order.getrandbits(31), n_launches=n_launches)
                logs[turn] = np.log(taken_ns)
                if n_launches is not None and process == turn == 0:
                    n_launches = launches_of_a_sample(taken_ns.astype(int).tolist())
                progress(process * n_rounds + turn + 1, design.n_processes * n_rounds)
        counted = logs[1:]
        levels = counted.mean(axis=1, keepdims=True)
        found[process] = np.median(counted - levels, axis=0) + levels.mean()
    return dict(zip(cases, found.T, strict=True))


def _taken_ns(meters: Iterable[tuple[Subject, ShapeMeter]], cases: Sequence[ShapeCase], **how: Any) -> Floats:
    taken_ns = np.empty(len(cases))
    for subject, meter in meters:
        places = [place for place, case in enumerate(cases) if case.subject is subject]
        taken_ns[places] = meter.round([cases[place] for place in places], **how)
    return taken_ns


@contextmanager
def fresh_meters(meters: SubjectMeters, subjects: Iterable[Subject]) -> Iterator[Mapping[Subject, ShapeMeter]]:
    """Yield a meter of a process of its own for each subject, in their order."""
    with ExitStack() as stack:
        yield {subject: stack.enter_context(meters[subject].fresh()) for subject in dict.fromkeys(subjects)}


def faults(meters: SubjectMeters, cases: Iterable[ShapeCase]) -> Mapping[ShapeCase, str | None]:
    """Return each case with its `fault`, in the order of the cases, from processes of their own."""
    wanted = tuple(dict.fromkeys(cases))
    with fresh_meters(meters, (case.subject for case in wanted)) as opened:
        return {case: fault(opened[case.subject], case) for case in wanted}


def fault(meter: ShapeMeter, case: ShapeCase) -> str | None:
    """Return why a case is no choice: it cannot be computed, dies, or computes something else; None where it is."""
    if (problem := meter.problem(case)) is not None:
        return f"{case.shape.id}: {problem}"
    try:
        deviation = meter.verify(case)
    except MeasurementError as error:
        return str(error)
    seen = f"error norm {deviation.error_norm:.3g}, tolerance {deviation.tolerance:.3g}"
    return None if deviation.is_correct else f"{case.shape.id}: computes something else, {seen}"


def described_subject(subject: Subject, meter: ShapeMeter) -> MeasuredSubject:
    """Return on what a subject is measured."""
    found = meter.description
    return MeasuredSubject(subject=subject, device=found.device, fingerprint=dict(found.fingerprint))
