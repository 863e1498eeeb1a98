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
from perfsuite.experiments.shapes.policy_promise import Claim, cases_of, is_surely_below, row_claims
from perfsuite.experiments.shapes.policy_question import question_of
from perfsuite.experiments.shapes.policy_record import Gain, PolicyRow, PolicyTable, ShapePolicy
from perfsuite.experiments.shapes.policy_rounds import (
    Floats,
    Progress,
    RoundDesign,
    SubjectMeters,
    faults,
    measure_rounds,
    no_progress,
)
from perfsuite.workload.shapes.shape_case import ShapeCase


class Holding(str, Enum):
    """Whether a promise holds."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseCheck:
    """One promise of one row, measured."""

    claim: Claim
    row: PolicyRow
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
    claims = row_claims(table, question_of(table), random.Random(f"check/{seed}"))
    reasons = faults(meters, cases_of(claims))
    sound = [each for each in claims if not any(reasons[case] for pair in each.pairs for case in pair)]
    log_ns = measure_rounds(meters, cases_of(sound), design=design, seed=seed, progress=progress)
    return tuple(_checked(each, row, log_ns, reasons) for each in claims if (row := each.row) is not None)


def refuse_other_device(policy: ShapePolicy, meters: SubjectMeters) -> None:
    """Refuse to check a policy on what it was not measured on; `PolicyError` names the field, and both values."""
    for stored in policy.subjects:
        with meters[stored.subject].fresh() as meter:
            here, there = dict(meter.description.fingerprint), dict(stored.fingerprint)
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                raise PolicyError(
                    f"{stored.subject.value}: {name} is {here.get(name)!r} here, and was {there.get(name)!r} where the "
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
    claim: Claim, row: PolicyRow, log_ns: Mapping[ShapeCase, Floats], reasons: Mapping[ShapeCase, str | None]
) -> PromiseCheck:
    """Judge a promise; a fault at one of its sizes leaves nothing to measure, for the rest is another range."""
    own = next((text for choice, _ in claim.pairs if (text := reasons[choice])), None)
    other = next((text for _, over in claim.pairs if (text := reasons[over])), None)
    measured = None
    if own or other:
        holding, reason = (Holding.FAILS, own) if own else (Holding.UNDECIDED, f"nothing to hold it against: {other}")
    else:
        measured = claim.measured(log_ns)
        holding, reason = holding_of(claim.promised, measured)
    return PromiseCheck(claim=claim, row=row, measured=measured, holding=holding, reason=reason or "")
