"""PADDING: a shape takes no longer than its padded shape, in the place of which it is computed."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.expectation.shapes.padding import padded_shape
from perfsuite.experiments.shapes.basis import Basis, told_difference, verdict_of
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.records.outcome import Outcome
from perfsuite.workload.shapes.shape_case import ShapeCase


def judge_padding(basis: Basis, case: ShapeCase) -> ShapeVerdict:
    """Judge whether a shape is slower than its padded shape by more than the margin.

    A kernel that computes whole tiles does the padded shape's work, and ggml's operators could; an edge that is handled
    so badly that the larger shape is faster is a fault of the kernel. A padded shape holds by definition.
    """
    padded = replace(case, shape=padded_shape(case))
    if padded == case:
        return verdict_of(ShapeProperty.PADDING, case, Outcome.PASS, "it is its own padded shape; nothing was measured")
    against = told_difference(padded, case)
    problem = basis.screen.problem(padded)
    if problem is not None:
        return verdict_of(ShapeProperty.PADDING, case, Outcome.INVALID, f"its padded shape, {against}: {problem}")
    answer = basis.slowdown(padded, case)
    outcome = Outcome.REGRESSED if answer.is_confirmed else Outcome.PASS
    seen = f"{answer.bounds.told} against padded {against}, margin {basis.margin_ratio * 100:g} %{answer.history}"
    return verdict_of(ShapeProperty.PADDING, case, outcome, seen, answer.bounds, padded)
