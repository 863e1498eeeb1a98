"""Which shapes are kept, and the verdict on one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import BaselineError
from perfsuite.experiments.shapes.judge import ShapeJudge
from perfsuite.experiments.shapes.kept import (
    KeptShape,
    ShapeExample,
    accepted_ratio_of,
    example_of,
    examples_path,
    is_accepted,
    judge_kept,
    keep,
    read_examples,
    read_kept,
    write_examples,
)
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty, ShapeVerdict
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shapes import ggml, tiled

CASE = tiled("gemm/m1-n1-k33/f32")
HERE = (("device", "simulated device"),)
ELSEWHERE = (("device", "another device"),)
#: A fix changes a kernel.
OTHER_KERNELS = (*HERE, ("kernels", "of the day"))
OTHER_DEVICE = "device 'another device', now 'simulated device'"


def example(shape_id: str = "gemm/m1-n1-k33/f32", *, tile: int = 64, **changes: Any) -> ShapeExample:
    """Return an example that was found at twice the time."""
    found = ShapeExample(
        case_id=tiled(shape_id, tile=tile, vector=8).case_id,
        property="padding",
        ratio=2.0,
        lower_ratio=1.9,
        upper_ratio=2.1,
        recorded_at="2025-01-01T00:00:00+00:00",
        fingerprint=HERE,
    )
    return replace(found, **changes)


SMALL, LARGE = example(), example("gemm/m1-n9-k65/f32")


def kept(
    *,
    property: ShapeProperty = ShapeProperty.PADDING,
    accepted_ratio: float | None = None,
    fingerprint: tuple[tuple[str, str], ...] = HERE,
) -> KeptShape:
    found = example(property=property.value, accepted_ratio=accepted_ratio, fingerprint=fingerprint)
    return KeptShape(example=found, case=CASE, property=property, path=Path("shapes/tiled-gemm.json"))


def judged(shape: KeptShape, factor: float, **faults: object) -> ShapeVerdict:
    """Judge a kept shape on a device on which it takes so many times as long as its padded shape."""
    meters = SimulatedMeters(slowdowns=((lambda case: case == CASE, factor),), **faults)  # type: ignore[arg-type]
    return judge_kept(ShapeJudge(meters), shape)


def test_a_file_is_the_same_in_whatever_order_examples_come(tmp_path: Path) -> None:
    """Entries are by fingerprint, examples by property and by sizes as numbers: 9 before 10."""
    examples = [example(f"gemm/m1-n1-k{k}/f32") for k in (9, 10, 33)]
    write_examples(tmp_path / "a.json", examples)
    write_examples(tmp_path / "b.json", reversed(examples))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert list(read_examples(tmp_path / "a.json")) == examples


def test_a_file_is_named_by_subject_and_operation() -> None:
    assert examples_path(Path("b"), "host", SMALL.case_id) == Path("b/host/shapes/tiled-gemm.json")
    for device, case_id in (("../host", SMALL.case_id), ("host", "shape/../../x/gemm")):
        with pytest.raises(BaselineError, match="expected a plain name"):
            examples_path(Path("b"), device, case_id)


def test_the_smallest_shape_is_kept(tmp_path: Path) -> None:
    """A larger one is covered by it, and so is the shape itself; a smaller one is added and takes nothing away."""
    assert keep(tmp_path, "host", SMALL)
    assert not keep(tmp_path, "host", LARGE)
    assert not keep(tmp_path, "host", SMALL)
    (kept,) = read_kept(tmp_path, "host")
    assert read_kept(tmp_path, "board") == ()
    assert (kept.example, kept.case.case_id, kept.property) == (SMALL, SMALL.case_id, ShapeProperty.PADDING)
    assert kept.path == examples_path(tmp_path, "host", SMALL.case_id)
    assert keep(tmp_path / "other", "host", LARGE)
    assert keep(tmp_path / "other", "host", SMALL)
    assert [each.example for each in read_kept(tmp_path / "other", "host")] == [SMALL, LARGE]


def test_kernels_are_no_part_of_the_bench(tmp_path: Path) -> None:
    assert keep(tmp_path, "host", SMALL)
    assert not keep(tmp_path, "host", replace(SMALL, fingerprint=(*HERE, ("kernels", "changed"))))
    assert example_of(judged(kept(), 2.0), {**dict(HERE), "kernels": "changed"}).fingerprint == HERE


@pytest.mark.parametrize(
    "other",
    [
        example("gemm/m2-n1-k32/f32"),
        example("gemm/m1-n9-k65/f16"),
        example("gemm/m1-n9-k65/f32", tile=32),
        example("gemv/n9-k65/f32"),
        replace(LARGE, case_id=ggml("gemm/m1-n9-k65/f32").case_id),
        replace(LARGE, property="growth"),
        replace(LARGE, fingerprint=ELSEWHERE),
    ],
)
def test_only_what_is_alike_and_no_smaller_is_covered(other: ShapeExample, tmp_path: Path) -> None:
    assert keep(tmp_path, "host", SMALL)
    assert keep(tmp_path, "host", other)
    assert len(read_kept(tmp_path, "host")) == 2


@pytest.mark.parametrize(("accepted_ratio", "is_added"), [(1.5, True), (2.0, False), (2.5, False)])
def test_an_accepted_shape_covers_what_is_no_worse(accepted_ratio: float, is_added: bool, tmp_path: Path) -> None:
    assert keep(tmp_path, "host", replace(SMALL, accepted_ratio=accepted_ratio))
    assert keep(tmp_path, "host", LARGE) is is_added


def test_the_largest_accepted_ratio_holds_for_cases_of_one_kind(tmp_path: Path) -> None:
    """Subject, operation, type, tiling, property and bench are the same; None where nothing was accepted."""
    ratios = {33: 2.0, 65: 3.0, 97: None}
    accepted = [example(f"gemm/m1-n1-k{k}/f32", accepted_ratio=ratio) for k, ratio in ratios.items()]
    write_examples(examples_path(tmp_path, "host", SMALL.case_id), accepted)
    kept, bench, larger = read_kept(tmp_path, "host"), dict(HERE), tiled("gemm/m9-n9-k333/f32")
    assert accepted_ratio_of(kept, larger, ShapeProperty.PADDING, bench) == 3.0
    assert accepted_ratio_of(kept, larger, ShapeProperty.PADDING, {**bench, "kernels": "changed"}) == 3.0
    assert accepted_ratio_of(kept, larger, ShapeProperty.PADDING, dict(ELSEWHERE)) is None
    assert accepted_ratio_of(kept, larger, ShapeProperty.GROWTH, bench) is None
    assert accepted_ratio_of(kept[2:], larger, ShapeProperty.PADDING, bench) is None
    narrow = tiled("gemm/m9-n9-k333/f32", tile=8, vector=1)
    for other in (narrow, tiled("gemm/m9-n9-k333/f16"), ggml("gemm/m9-n9-k333/f32")):
        assert accepted_ratio_of(kept, other, ShapeProperty.PADDING, bench) is None


@pytest.mark.parametrize(
    ("factor", "more", "outcome", "reason"),
    [
        (2.0, {}, Outcome.REGRESSED, "still fails; +"),
        (1.0, {}, Outcome.IMPROVED, "no longer fails; remove it from shapes/tiled-gemm.json; "),
        (1.25, {"sigma": 0.1}, Outcome.INCONCLUSIVE, "not seen to fail, and not ruled out; "),
        (1.0, {"problem": lambda _: "no such type"}, Outcome.INVALID, "no such type"),
    ],
)
def test_a_kept_shape_fails_is_mended_or_is_open(
    factor: float, more: dict[str, Any], outcome: Outcome, reason: str
) -> None:
    verdict = judged(kept(), factor, **more)
    assert verdict.outcome is outcome
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize(
    ("fingerprint", "accepted_ratio", "factor", "outcome", "reason"),
    [
        (HERE, 2.0, 2.0, Outcome.PASS, "within what was accepted: accepted were +100.0 %"),
        (HERE, 2.0, 2.4, Outcome.PASS, "within what was accepted"),
        (HERE, 2.0, 2.7, Outcome.REGRESSED, "worse than accepted: accepted were +100.0 %"),
        (HERE, 2.0, 1.0, Outcome.IMPROVED, "no longer fails"),
        (OTHER_KERNELS, None, 1.0, Outcome.IMPROVED, "no longer fails"),
        (OTHER_KERNELS, 2.0, 2.0, Outcome.PASS, "within what was accepted"),
        (ELSEWHERE, None, 2.0, Outcome.REGRESSED, ""),
        (ELSEWHERE, 2.0, 2.0, Outcome.INCOMPARABLE, OTHER_DEVICE),
        (ELSEWHERE, 2.0, 2.7, Outcome.REGRESSED, ""),
        (ELSEWHERE, None, 1.0, Outcome.PASS, OTHER_DEVICE),
        (ELSEWHERE, 2.0, 1.0, Outcome.PASS, OTHER_DEVICE),
    ],
)
def test_what_was_accepted_passes_up_to_the_margin_on_its_bench(
    fingerprint: tuple[tuple[str, str], ...], accepted_ratio: float | None, factor: float, outcome: Outcome, reason: str
) -> None:
    """At an accepted ratio of 2 and a margin of a quarter it fails from 2.5 on; other kernels are no other bench."""
    verdict = judged(kept(accepted_ratio=accepted_ratio, fingerprint=fingerprint), factor)
    assert verdict.outcome is outcome
    assert reason in verdict.reason


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
