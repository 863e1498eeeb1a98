"""GROWTH: a shape takes no longer than the same shape grown by a whole tile in one dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from perfsuite.expectation.shapes.floor import dimension_steps, padded_shape
from perfsuite.experiments.shapes.basis import Basis, told_difference, verdict_of
from perfsuite.experiments.shapes.confirmation import Answer
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.records.outcome import Outcome
from perfsuite.workload.shapes.operation_shape import block_values
from perfsuite.workload.shapes.shape_case import ShapeCase


def judge_padding(basis: Basis, case: ShapeCase) -> ShapeVerdict:
    """Judge whether a shape is slower than its padded shape by more than the margin.

    A kernel that computes whole tiles does the padded shape's work, and ggml's operators could; an edge that is handled
    so badly that the larger shape is faster is a fault of the kernel. A padded shape holds by definition.
    """
    padded = replace(case, shape=padded_shape(case))
    if padded == case:
        return verdict_of(ShapeProperty.PADDING, case, Outcome.PASS, "it is its own padded shape; nothing was measured")
    if (problem := basis.screen.problem(padded)) is not None:
        reason = f"its padded shape, {told_difference(padded, case)}: {problem}"
        return verdict_of(ShapeProperty.PADDING, case, Outcome.INVALID, reason)
    return _verdict(basis, ShapeProperty.PADDING, case, padded, basis.slowdown(padded, case))


def judge_growth(basis: Basis, case: ShapeCase) -> ShapeVerdict:
    """Judge whether the cost falls by more than the margin where a dimension grows.

    The dimensions are judged in turn, up to the first that fails; where none does, the verdict tells of the one that
    came nearest. A grown shape that cannot be computed bounds nothing.
    """
    answers: list[tuple[ShapeCase, Answer]] = []
    problems: list[str] = []
    for grown in grown_cases(case):
        if (problem := basis.screen.problem(grown)) is not None:
            problems.append(f"grown to {told_difference(grown, case)}: {problem}")
            continue
        answer = basis.slowdown(grown, case)
        if answer.is_confirmed:
            return _verdict(basis, ShapeProperty.GROWTH, case, grown, answer)
        answers.append((grown, answer))
    if not answers:
        return verdict_of(ShapeProperty.GROWTH, case, Outcome.INVALID, "; ".join(problems))
    return _verdict(basis, ShapeProperty.GROWTH, case, *max(answers, key=lambda each: each[1].bounds.ratio))


def grown_cases(case: ShapeCase) -> Iterator[ShapeCase]:
    """Yield the case grown by one step in each dimension; the inner one by whole blocks of the stored type."""
    for name, step in dimension_steps(case).items():
        inner = name == case.operation.inner_dimension
        step = math.lcm(step, block_values(case.shape.type)) if inner else step
        yield replace(case, shape=case.shape.with_sizes(**{name: case.shape.of(name) + step}))


def _verdict(
    basis: Basis, property: ShapeProperty, case: ShapeCase, against: ShapeCase, answer: Answer
) -> ShapeVerdict:
    how = "padded" if property is ShapeProperty.PADDING else "grown"
    told = f"{answer.bounds.told} against {how} {told_difference(against, case)}, margin {basis.margin_ratio * 100:g} %"
    outcome = Outcome.REGRESSED if answer.is_confirmed else Outcome.PASS
    return verdict_of(property, case, outcome, f"{told}{answer.history}", answer.bounds, against)
