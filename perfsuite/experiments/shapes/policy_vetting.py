"""Leaves out of a question what cannot be measured at all of its shapes, or computes something else there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from perfsuite.errors import MeasurementError, PolicyError
from perfsuite.experiments.shapes.policy_question import PolicyQuestion
from perfsuite.experiments.shapes.policy_record import LeftOut, MeasuredSubject
from perfsuite.experiments.shapes.policy_rounds import SubjectMeters, fresh_meters
from perfsuite.measure.shapes.meter import ShapeMeter
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Vetted:
    """A question whose every case is computed, and correctly."""

    question: PolicyQuestion
    left_out: tuple[LeftOut, ...]
    subjects: tuple[MeasuredSubject, ...]


def vetted(question: PolicyQuestion, meters: SubjectMeters) -> Vetted:
    """Run every case once and compare its output with NumPy's, in processes of their own.

    Raises PolicyError: no choice is left; PerfsuiteError: a subject cannot run at all.
    """
    left_out = []
    with fresh_meters(meters, (Subject(choice.subject) for choice in question.choices)) as opened:
        described = tuple(described_subject(subject, meter) for subject, meter in opened.items())
        for choice in question.choices:
            cases = (question.case(choice, size) for size in question.sizes)
            reasons = (fault(opened[case.subject], case) for case in cases)
            if reason := next((each for each in reasons if each is not None), None):
                left_out.append(LeftOut(choice=choice, reason=reason))
    return _kept(question, tuple(left_out), described)


def without(found: Vetted, place: int, reason: str) -> Vetted:
    """Leave one more choice out, by its place; `PolicyError` where it is the last."""
    more = LeftOut(choice=found.question.choices[place], reason=reason)
    return _kept(found.question, (*found.left_out, more), found.subjects)


def faults(meters: SubjectMeters, cases: Iterable[ShapeCase]) -> Mapping[ShapeCase, str | None]:
    """Return each case with its `fault`, in the order of the cases, from processes of their own."""
    wanted = tuple(dict.fromkeys(cases))
    with fresh_meters(meters, (case.subject for case in wanted)) as opened:
        return {case: fault(opened[case.subject], case) for case in wanted}


def _kept(question: PolicyQuestion, left_out: tuple[LeftOut, ...], subjects: tuple[MeasuredSubject, ...]) -> Vetted:
    lost = {each.choice for each in left_out}
    kept = tuple(choice for choice in question.choices if choice not in lost)
    if not kept:
        raise PolicyError(f"{question.decides.value}: no choice is left; {left_out[0].choice}: {left_out[0].reason}")
    return Vetted(question=replace(question, choices=kept), left_out=left_out, subjects=subjects)


def described_subject(subject: Subject, meter: ShapeMeter) -> MeasuredSubject:
    """Return on what a subject is measured."""
    found = meter.description
    return MeasuredSubject(subject=subject.value, device=found.device, fingerprint=dict(found.fingerprint))


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
