"""Which shapes are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import BaselineError
from perfsuite.experiments.shapes.kept_files import (
    ShapeExample,
    accepted_ratio_of,
    example_of,
    examples_path,
    keep,
    read_examples,
    read_kept,
    write_examples,
)
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.records.outcome import Outcome
from perfsuite.workload.shapes.shape_case import Tiling
from tests.synthetic_shapes import ggml, tiled

EXAMPLE = ShapeExample(
    case_id="shape/tiled/gemm/m1-n1-k33/f32/tile64-vector8",
    property="padding",
    ratio=2.0,
    lower_ratio=1.9,
    upper_ratio=2.1,
    recorded_at="2025-01-01T00:00:00+00:00",
    note="the tail of a row",
    fingerprint=(("device", "one"), ("driver", "1")),
)


def test_a_file_is_the_same_in_whatever_order_examples_come(tmp_path: Path) -> None:
    """Entries are by fingerprint, examples by property and by sizes as numbers: 9 before 10."""
    ids = [f"shape/tiled/gemm/m1-n1-k{k}/f32/tile64-vector8" for k in (9, 10, 33)]
    examples = [replace(EXAMPLE, case_id=each) for each in ids]
    write_examples(tmp_path / "a.json", examples)
    write_examples(tmp_path / "b.json", reversed(examples))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert [each.case_id for each in read_examples(tmp_path / "a.json")] == ids


def test_a_file_is_named_by_subject_and_operation() -> None:
    assert examples_path(Path("b"), "host", EXAMPLE.case_id) == Path("b/host/shapes/tiled-gemm.json")
    with pytest.raises(BaselineError, match="gemm: not a shape's case id"):
        examples_path(Path("b"), "host", "gemm")
    for device, case_id in (("../host", EXAMPLE.case_id), ("host", "shape/../../x/gemm")):
        with pytest.raises(BaselineError, match="expected a plain name"):
            examples_path(Path("b"), device, case_id)


FINGERPRINT = (("device", "one"),)


def example(case_id: str, *, property: str = "padding", accepted_ratio: float | None = None) -> ShapeExample:
    """Return an example that was found at twice the time."""
    return ShapeExample(
        case_id=case_id,
        property=property,
        ratio=2.0,
        lower_ratio=1.9,
        upper_ratio=2.1,
        recorded_at="2025-01-01T00:00:00+00:00",
        accepted_ratio=accepted_ratio,
        fingerprint=FINGERPRINT,
    )


SMALL = example(tiled("gemm/m1-n1-k33/f32").case_id)
LARGE = example(tiled("gemm/m1-n9-k65/f32").case_id)


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
    """A shape that fails again after a kernel was changed is not kept twice."""
    assert keep(tmp_path, "host", SMALL)
    assert not keep(tmp_path, "host", replace(SMALL, fingerprint=(*FINGERPRINT, ("kernels", "changed"))))
    verdict = ShapeVerdict(
        case_id=SMALL.case_id, property=ShapeProperty.PADDING, outcome=Outcome.REGRESSED, reason="slow", ratio=2.0
    )
    assert example_of(verdict, {"device": "one", "kernels": "changed"}).fingerprint == FINGERPRINT


@pytest.mark.parametrize(
    "other",
    [
        example(tiled("gemm/m2-n1-k32/f32").case_id),
        example(tiled("gemm/m1-n9-k65/f16").case_id),
        example(tiled("gemm/m1-n9-k65/f32", tile=32).case_id),
        example(tiled("gemm/m1-n9-k65/f32", vector=4).case_id),
        example(tiled("gemv/n9-k65/f32").case_id),
        example(ggml("gemm/m1-n9-k65/f32").case_id),
        replace(LARGE, property="growth"),
        replace(LARGE, fingerprint=(("device", "another"),)),
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


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"property": "speed"}, "'property' is 'speed', expected one of correct, padding"),
        ({"case_id": "shape/tiled/gemm/m1/f32/tile64-vector8"}, "'case_id': gemm: dimensions m; expected m, n, k"),
    ],
)
def test_an_example_that_names_nothing_is_refused(change: dict[str, str], complaint: str, tmp_path: Path) -> None:
    path = examples_path(tmp_path, "host", SMALL.case_id)
    write_examples(path, (replace(SMALL, **change),))  # type: ignore[arg-type]
    with pytest.raises(BaselineError, match=complaint) as error:
        read_kept(tmp_path, "host")
    assert str(error.value).startswith(f"{path}: ")


def test_an_example_tells_what_the_verdict_did(tmp_path: Path) -> None:
    """Ratio and bounds are the verdict's, the time is now, and the bench is named."""
    verdict = ShapeVerdict(
        property=ShapeProperty.GROWTH,
        case_id=SMALL.case_id,
        outcome=Outcome.REGRESSED,
        reason="",
        ratio=1.6,
        lower_ratio=1.5,
        upper_ratio=1.7,
    )
    made = example_of(verdict, {"driver": "1", "device": "one"})
    assert (made.property, made.ratio, made.lower_ratio, made.upper_ratio) == ("growth", 1.6, 1.5, 1.7)
    assert made.fingerprint == (("device", "one"), ("driver", "1"))
    assert made.recorded_at.endswith("+00:00")
    assert keep(tmp_path, "host", made)
    assert read_kept(tmp_path, "host")[0].example == made


def test_the_largest_accepted_ratio_holds_for_cases_of_one_kind(tmp_path: Path) -> None:
    """Subject, operation, type, tiling, property and bench are the same; None where nothing was accepted."""
    cases = [tiled(f"gemm/m1-n1-k{k}/f32") for k in (33, 65, 97)]
    accepted = (
        example(cases[0].case_id, accepted_ratio=2.0),
        example(cases[1].case_id, accepted_ratio=3.0),
        example(cases[2].case_id),
    )
    write_examples(examples_path(tmp_path, "host", cases[0].case_id), accepted)
    kept, bench = read_kept(tmp_path, "host"), dict(FINGERPRINT)
    other = replace(cases[0], tiling=Tiling(tile=8, vector=1))
    larger = tiled("gemm/m9-n9-k333/f32")
    assert accepted_ratio_of(kept, larger, ShapeProperty.PADDING, bench) == 3.0
    assert accepted_ratio_of(kept, larger, ShapeProperty.PADDING, {**bench, "kernels": "changed"}) == 3.0
    assert accepted_ratio_of(kept, larger, ShapeProperty.PADDING, {"device": "two"}) is None
    assert accepted_ratio_of(kept, larger, ShapeProperty.GROWTH, bench) is None
    assert accepted_ratio_of(kept, other, ShapeProperty.PADDING, bench) is None
    assert accepted_ratio_of(kept, tiled("gemm/m9-n9-k333/f16"), ShapeProperty.PADDING, bench) is None
    assert accepted_ratio_of(kept, ggml("gemm/m9-n9-k333/f32"), ShapeProperty.PADDING, bench) is None
    assert accepted_ratio_of(kept[2:], larger, ShapeProperty.PADDING, bench) is None
