"""Checks a table by measuring it anew: each row's choice against its alternatives, over the range of the row.

The gain of a row is measured as it was promised, in fresh processes and at sizes that are drawn anew; the two sides are
pairs, taken in the same rounds. See docs/policy.md for what holds, fails and is undecided.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_promise import (
    DrawnSizes,
    Pair,
    drawn_sizes,
    gain_of_pairs,
    is_surely_below,
    pairs_at,
)
from perfsuite.experiments.shapes.policy_question import PolicyQuestion, question_of
from perfsuite.experiments.shapes.policy_record import Choice, Gain, PolicyRow, PolicyTable, ShapePolicy
from perfsuite.experiments.shapes.policy_rounds import (
    Floats,
    Progress,
    RoundDesign,
    SubjectMeters,
    described_subject,
    faults,
    no_progress,
    times_by_case,
)
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject


class Holding(str, Enum):
    """Whether a promise holds."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a row says that it gains over one other choice, and where that is looked at."""

    row: PolicyRow
    over: Choice
    promised: Gain
    drawn: DrawnSizes


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
    design: RoundDesign,
    seed: int = 0,
    progress: Progress = no_progress,
) -> tuple[PromiseCheck, ...]:
    """Measure the promises of a table, two of a row at most; `PerfsuiteError` where a subject cannot run."""
    question = question_of(table)
    promises = promises_of(table, question, seed=seed)
    sides = {each: pairs_at(question, each.row.choice, each.over, each.drawn.sizes) for each in promises}
    reasons = faults(meters, (case for pairs in sides.values() for pair in pairs for case in pair))
    sound = [pairs for pairs in sides.values() if not any(reasons[case] for pair in pairs for case in pair)]
    cases = tuple(dict.fromkeys(case for pairs in sound for pair in pairs for case in pair))
    log_ns = times_by_case(meters, cases, design=design, seed=seed, progress=progress)
    return tuple(_checked(each, pairs, log_ns, reasons) for each, pairs in sides.items())


def promises_of(table: PolicyTable, question: PolicyQuestion, *, seed: int) -> tuple[Promise, ...]:
    """Return what the rows promise over other choices than their own, and draw the sizes of each row."""
    found, draw = [], random.Random(f"check/{seed}")
    for row in table.rows:
        drawn = drawn_sizes(row, table.measured_sizes, draw=draw, step=question.step)
        gains = {table.worst: row.gain_over_worst, table.default: row.gain_over_default}
        found += [
            Promise(row=row, over=over, promised=gains[over], drawn=drawn)
            for over in dict.fromkeys((table.default, table.worst))
            if over != row.choice
        ]
    return tuple(found)


def refuse_other_device(policy: ShapePolicy, meters: SubjectMeters) -> None:
    """Refuse to check a policy on what it was not measured on; `PolicyError` names the field, and both values."""
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
    is_slower = measured.upper_ratio < 1.0
    if is_surely_below(measured, promised):
        return Holding.FAILS, "the choice is slower" if is_slower else "the gain is smaller than promised"
    if is_slower and promised.upper_ratio >= 1.0:
        return Holding.UNDECIDED, "the choice is slower, which the promise leaves open"
    if promised.lower_ratio > 1.0 >= measured.lower_ratio:
        return Holding.UNDECIDED, "the gain cannot be distinguished from none"
    return Holding.HOLDS, ""


def _checked(
    promise: Promise,
    pairs: tuple[Pair, ...],
    log_ns: Mapping[ShapeCase, Floats],
    reasons: Mapping[ShapeCase, str | None],
) -> PromiseCheck:
    """Judge a promise; a fault at one of its sizes leaves nothing to measure, for the rest is another range."""
    own = next((text for choice, _ in pairs if (text := reasons[choice])), None)
    other = next((text for _, over in pairs if (text := reasons[over])), None)
    measured = None
    if own or other:
        holding, reason = (Holding.FAILS, own) if own else (Holding.UNDECIDED, f"nothing to hold it against: {other}")
    else:
        measured = gain_of_pairs(log_ns, pairs, n_drawn=promise.drawn.n_drawn)
        holding, reason = holding_of(promise.promised, measured)
    return PromiseCheck(promise=promise, measured=measured, holding=holding, reason=reason or "")
