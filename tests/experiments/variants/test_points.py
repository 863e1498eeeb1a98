"""What is varied, and on which workload."""

from __future__ import annotations

import pytest

from perfsuite.experiments.variants.points import AXES, VariantPoint, variant_points
from tests.catalogue_workloads import catalogue_weights

WEIGHTS, DRAFT = catalogue_weights("smollm2-360m-l2-q8_0"), catalogue_weights("smollm2-135m-l2-q8_0")


@pytest.mark.parametrize("axis", AXES)
def test_an_axis_has_four_points_or_more(axis: str) -> None:
    points = tuple(variant_points(WEIGHTS, DRAFT, (axis,)))
    assert len({point.setting for point in points}) == len(points) >= 4
    assert len({repr(point.workload) for point in points} | {repr(points[0].plain)}) == len(points) + 1
    assert {point.plain for point in points} == {points[0].plain}
    assert {point.workload.scenario.name for point in points} == {AXES[axis].scenario}


def test_a_draft_is_a_model_or_the_text_itself() -> None:
    points = tuple(variant_points(WEIGHTS, DRAFT, ("draft",)))

    def name(point: VariantPoint) -> str | None:
        return point.workload.draft and point.workload.draft.weights.name

    assert {name(point) for point in points[:-1]} == {DRAFT.name}
    assert (points[-1].setting, name(points[-1])) == ("ngram:4:0.8", None)
