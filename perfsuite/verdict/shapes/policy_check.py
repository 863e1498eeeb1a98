"""Checks a table by measuring it anew: each row's choice against its alternatives, at sizes that nothing was fitted to.

The gain of a row is measured in fresh processes, at sizes halfway between those that the table was made from; the two
sides are pairs, taken in the same rounds. What the row promises over its default and over the worst choice

- fails where the whole interval of the measured gain lies below that of the promised one, or below 1, and where the
  choice cannot be computed or computes something else;
- is undecided where a gain is promised for sure, its interval above 1, and the measured one reaches down to 1;
- holds otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum

import numpy as np

from perfsuite.errors import PolicyError
from perfsuite.records.shape_policy import Choice, Gain, PolicyRow, PolicyTable, ShapePolicy
from perfsuite.verdict.shapes.policy_gain import gain_of_range
from perfsuite.verdict.shapes.policy_held_out import held_out_sizes
from perfsuite.verdict.shapes.policy_question import PolicyQuestion, question_of
from perfsuite.verdict.shapes.policy_rounds import (
    Floats,
    Progress,
    RoundDesign,
    SubjectMeters,
    measure_rounds,
    no_progress,
)
from perfsuite.verdict.shapes.policy_vetting import described_subject, fault
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

CHECK_DESIGN = RoundDesign(n_processes=6)


class Holding(str, Enum):
    """Whether a promise holds."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a row says that it gains over one other choice, and where that is looked at."""

    row: PolicyRow
    #: The default, or the worst choice.
    over: Choice
    promised: Gain
    sizes: tuple[int, ...]
    #: Whether the table was made from other sizes; False where its range holds no others.
    is_held_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseCheck:
    """One promise of one row, measured."""

    promise: Promise
    #: None where nothing could be measured.
    measured: Gain | None
    holding: Holding
    #: Why it does not hold; empty where it does.
    reason: str = ""


def check_table(
    table: PolicyTable,
    meters: SubjectMeters,
    *,
    design: RoundDesign = CHECK_DESIGN,
    seed: int = 0,
    progress: Progress = no_progress,
) -> tuple[PromiseCheck, ...]:
    """Measure the promises of a table, two of a row at most; none where there was nothing to choose from.

    Raises
    ------
    PerfsuiteError
        The table names what there is not, a subject cannot run, or a process died.
    """
    question = question_of(table)
    promises = promises_of(table, question)
    faults = _faults(meters, question, promises)
    sides = {each: _sides(question, each, faults) for each in promises}
    cases = tuple(dict.fromkeys(case for pairs in sides.values() for pair in pairs for case in pair))
    log_ns: dict[ShapeCase, Floats] = {}
    if cases:
        measured = measure_rounds(meters, cases, design=design, seed=seed, progress=progress)
        log_ns = {case: measured[:, place] for place, case in enumerate(cases)}
    return tuple(_checked(question, each, pairs, log_ns, faults) for each, pairs in sides.items())


def promises_of(table: PolicyTable, question: PolicyQuestion) -> tuple[Promise, ...]:
    """Return what the rows promise over other choices than their own."""
    found = []
    for row in table.rows:
        held_out = held_out_sizes(row, table.measured_sizes, question.step)
        sizes = held_out or tuple(
            size for size in table.measured_sizes if row.measured_least <= size <= row.measured_most
        )
        gains = {table.worst: row.gain_over_worst, table.default: row.gain_over_default}
        found += [
            Promise(row=row, over=over, promised=gains[over], sizes=sizes, is_held_out=bool(held_out))
            for over in dict.fromkeys((table.default, table.worst))
            if over != row.choice
        ]
    return tuple(found)


def refuse_other_device(policy: ShapePolicy, meters: SubjectMeters) -> None:
    """Refuse to check a policy on what it was not measured on.

    Raises
    ------
    PolicyError
        A field of a fingerprint differs; it names both values.
    """
    for stored in policy.subjects:
        subject = Subject(stored.subject)
        with meters[subject].fresh() as meter:
            here, there = dict(described_subject(subject, meter).fingerprint), dict(stored.fingerprint)
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                raise PolicyError(
                    f"{stored.subject}: {name} is {here.get(name)!r} here, and was {there.get(name)!r} where the "
                    "policy was measured; measure it anew"
                )


def holding_of(promised: Gain, measured: Gain) -> tuple[Holding, str]:
    """Return whether a promise holds, and why not."""
    if measured.upper_ratio < 1.0:
        return Holding.FAILS, "the choice is slower"
    if measured.upper_ratio < promised.lower_ratio:
        return Holding.FAILS, "the gain is smaller than promised"
    if promised.lower_ratio > 1.0 >= measured.lower_ratio:
        return Holding.UNDECIDED, "the gain cannot be told from none"
    return Holding.HOLDS, ""


_Pair = tuple[ShapeCase, ShapeCase]
_Faults = Mapping[ShapeCase, str | None]


def _pairs(question: PolicyQuestion, promise: Promise) -> Iterable[_Pair]:
    """Return the choice and what it is held against, at each size."""
    for size in promise.sizes:
        yield question.case(promise.row.choice, size), question.case(promise.over, size)


def _faults(meters: SubjectMeters, question: PolicyQuestion, promises: Iterable[Promise]) -> _Faults:
    cases = dict.fromkeys(case for each in promises for pair in _pairs(question, each) for case in pair)
    with ExitStack() as stack:
        subjects = dict.fromkeys(case.subject for case in cases)
        opened = {subject: stack.enter_context(meters[subject].fresh()) for subject in subjects}
        return {case: fault(opened[case.subject], case) for case in cases}


def _sides(question: PolicyQuestion, promise: Promise, faults: _Faults) -> tuple[_Pair, ...]:
    """Return the pairs that can be measured; none where the choice has a fault at any of the sizes."""
    pairs = tuple(_pairs(question, promise))
    if any(faults[choice] for choice, _ in pairs):
        return ()
    return tuple(pair for pair in pairs if faults[pair[1]] is None)


def _checked(
    question: PolicyQuestion,
    promise: Promise,
    pairs: tuple[_Pair, ...],
    log_ns: Mapping[ShapeCase, Floats],
    faults: _Faults,
) -> PromiseCheck:
    if not pairs:
        choices, others = zip(*_pairs(question, promise), strict=True)
        own = next((text for case in choices if (text := faults[case])), None)
        reason = own or f"nothing to hold it against: {faults[others[0]]}"
        holding = Holding.FAILS if own else Holding.UNDECIDED
        return PromiseCheck(promise=promise, measured=None, holding=holding, reason=reason)
    gains = np.stack([log_ns[other] - log_ns[choice] for choice, other in pairs], axis=1)
    measured = gain_of_range(gains)
    holding, reason = holding_of(promise.promised, measured)
    return PromiseCheck(promise=promise, measured=measured, holding=holding, reason=reason)
