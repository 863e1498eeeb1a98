"""The verdict on a kept shape."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.experiments.shapes.judge import ShapeJudge
from perfsuite.experiments.shapes.kept import is_accepted, judge_kept
from perfsuite.experiments.shapes.kept_files import KeptShape, ShapeExample
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty, ShapeVerdict
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shapes import tiled

CASE = tiled("gemm/m1-n1-k33/f32")
HERE = (("device", "simulated device"),)
ELSEWHERE = (("device", "another device"),)


def kept(
    *,
    property: ShapeProperty = ShapeProperty.PADDING,
    accepted_ratio: float | None = None,
    fingerprint: tuple[tuple[str, str], ...] = HERE,
) -> KeptShape:
    """Return a shape that was found at twice the time."""
    example = ShapeExample(
        case_id=CASE.case_id,
        property=property.value,
        ratio=2.0,
        lower_ratio=1.9,
        upper_ratio=2.1,
        recorded_at="2025-01-01T00:00:00+00:00",
        accepted_ratio=accepted_ratio,
        fingerprint=fingerprint,
    )
    return KeptShape(example=example, case=CASE, property=property, path=Path("shapes/tiled-gemm.json"))


def judged(shape: KeptShape, factor: float, **faults: object) -> ShapeVerdict:
    """Judge a kept shape on a device on which it takes so many times as long as its padded shape."""
    meters = SimulatedMeters(slowdowns=((lambda case: case == CASE, factor),), **faults)  # type: ignore[arg-type]
    return judge_kept(ShapeJudge(meters), shape)


def test_a_kept_shape_fails_is_mended_or_is_open() -> None:
    """The judge's reason follows: it still fails, must be removed, may fail yet, or cannot be computed any more."""
    verdict = judged(kept(), 2.0)
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.reason.startswith("still fails; +")
    verdict = judged(kept(), 1.0)
    assert verdict.outcome is Outcome.IMPROVED
    assert verdict.reason.startswith("no longer fails; remove it from shapes/tiled-gemm.json; ")
    verdict = judged(kept(), 1.25, sigma=0.1)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reason.startswith("not seen to fail, and not ruled out; ")
    verdict = judged(kept(), 1.0, problem=lambda _: "no such type")
    assert (verdict.outcome, verdict.reason) == (Outcome.INVALID, "no such type")


def test_a_shape_that_was_found_in_other_kernels_is_held_against_these() -> None:
    """A fix changes a kernel: that is no other bench, and what was accepted stays accepted."""
    found = (*HERE, ("kernels", "of the day"))
    assert judged(kept(fingerprint=found), 1.0).outcome is Outcome.IMPROVED
    assert judged(kept(fingerprint=found, accepted_ratio=2.0), 2.0).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("factor", "outcome", "reason"),
    [
        (2.0, Outcome.PASS, "within what was accepted: accepted were +100.0 %"),
        (2.4, Outcome.PASS, "within what was accepted"),
        (2.7, Outcome.REGRESSED, "worse than accepted: accepted were +100.0 %"),
        (1.0, Outcome.IMPROVED, "no longer fails"),
    ],
)
def test_what_was_accepted_passes_up_to_the_margin(factor: float, outcome: Outcome, reason: str) -> None:
    """At an accepted ratio of 2 and a margin of a quarter the shape fails from 2.5 on."""
    verdict = judged(kept(accepted_ratio=2.0), factor)
    assert verdict.outcome is outcome
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize(
    ("accepted_ratio", "factor", "outcome"),
    [
        (None, 2.0, Outcome.REGRESSED),
        (2.0, 2.0, Outcome.INCOMPARABLE),
        (2.0, 2.7, Outcome.REGRESSED),
        (None, 1.0, Outcome.PASS),
        (2.0, 1.0, Outcome.PASS),
    ],
)
def test_a_shape_of_another_bench_is_judged_and_accepted_by_itself(
    accepted_ratio: float | None, factor: float, outcome: Outcome
) -> None:
    verdict = judged(kept(accepted_ratio=accepted_ratio, fingerprint=ELSEWHERE), factor)
    assert verdict.outcome is outcome
    if outcome is not Outcome.REGRESSED:
        assert "device 'another device', now 'simulated device'" in verdict.reason


def test_a_wrong_output_is_never_accepted() -> None:
    wrong = kept(property=ShapeProperty.CORRECT, accepted_ratio=1e9)
    assert judged(wrong, 1.0, wrong=lambda _: True).outcome is WRONG
    assert judged(kept(accepted_ratio=1e9), 1.0, crashes=lambda case: case == CASE).outcome is WRONG
    assert judged(wrong, 1.0).outcome is Outcome.IMPROVED


@pytest.mark.parametrize(
    "changed",
    [{"outcome": WRONG}, {"property": ShapeProperty.CORRECT}, {"lower_ratio": None}, {"lower_ratio": 2.3}],
    ids=["wrong", "no matter of a margin", "without a bound", "worse"],
)
def test_only_what_is_as_slow_as_was_accepted_is(changed: dict[str, object]) -> None:
    verdict = replace(judged(kept(), 2.0), lower_ratio=1.0)
    assert is_accepted(verdict, 2.0, 0.1)
    assert not is_accepted(replace(verdict, **changed), 2.0, 0.1)  # type: ignore[arg-type]
