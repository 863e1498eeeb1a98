"""A sweep over one dimension of an operation: what each size took, and what is seen in the whole."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any, TextIO

from perfsuite.errors import PerfsuiteError, ShapeError
from perfsuite.expectation.shapes.floor import dimension_steps, padded_shape
from perfsuite.records import codec
from perfsuite.records.codec import Count, Number, Size
from perfsuite.records.whole_file import write_json, write_whole
from perfsuite.workload.shapes.operation_shape import OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One size; what was not measured, or is not expected of it, is None."""

    size: Size
    time_ns: Number | None = None
    #: Where the time lies with a confidence of 95 %, as far as the rounds tell.
    lower_ns: Number | None = None
    upper_ns: Number | None = None
    #: Work of the padded size over that of the padded last size of the sweep.
    expected_time_ratio: Number | None = None
    #: Useful FLOPs a second over the best that whole tiles reached in the sweep.
    efficiency_ratio: Number | None = None
    #: Size over padded size.
    expected_efficiency_ratio: Number | None = None
    #: Of the output from NumPy's, None where it was not verified or is no number; and whether it is within tolerance.
    error_norm: Number | None = None
    is_correct: bool | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A step between two neighbouring sizes."""

    #: The last size before it, and the first behind it.
    size: Size
    next_size: Size
    #: Up is positive.
    height_ns: Number
    #: Over the time before it.
    height_ratio: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSteps:
    """The jumps that were found, against those that a tile should make."""

    #: By how much the dimension is padded.
    step: Size
    #: Multiples of the step with a jump, and those without one although the noise would have let it be seen.
    found: tuple[Size, ...]
    missed: tuple[Size, ...]
    #: Multiples without a jump that was found, where the noise would have hidden it.
    hidden: tuple[Size, ...]
    #: Sizes of jumps up that are at no multiple.
    extra: tuple[Size, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSweep:
    """A sweep with its setting."""

    #: Empty where nothing was measured.
    device: str
    fingerprint: Mapping[str, str]
    subject: str
    operation: str
    #: How B is stored.
    type: str
    #: None where the subject cuts as it sees fit.
    tile: Size | None
    vector: Size | None
    #: Of the dimensions that are not swept.
    sizes: Mapping[str, Size]
    swept: str
    #: By how much the swept dimension is padded at once, 1 where it is not; None where nobody knows.
    step: Size | None
    n_rounds: Count
    #: Which quantile of a size's samples is its time; the same for all sizes.
    quantile: Number | None = None
    #: Spearman's, of measured and expected efficiency.
    rank_correlation: Number | None = None
    #: The same of measured and expected time; near 1 for anything that grows.
    time_rank_correlation: Number | None = None
    mean_efficiency_ratio: Number | None = None
    expected_mean_efficiency_ratio: Number | None = None
    #: Standard deviation of a time about its neighbours, over the time.
    noise_ratio: Number | None = None
    jumps: tuple[Jump, ...] = ()
    #: None where no tile is known.
    tile_steps: TileSteps | None = None
    period: Size | None = None
    points: tuple[SweepPoint, ...]

    @property
    def measured(self) -> tuple[SweepPoint, ...]:
        return tuple(point for point in self.points if point.time_ns is not None)

    @property
    def title(self) -> str:
        """What was swept, such as ``bmm n1:512 b32 m1 k128 f32, tile 64, vector 8``."""
        swept = f"{self.swept}{self.points[0].size}:{self.points[-1].size}"
        cut = "" if self.tile is None else f", tile {self.tile}, vector {self.vector}"
        sizes = " ".join(f"{name}{size}" for name, size in self.sizes.items())
        return f"{self.operation} {swept} {sizes} {self.type}{cut}"


def to_plain(sweep: ShapeSweep) -> dict[str, Any]:
    """Return a sweep as JSON has it."""
    return {"schema": SCHEMA, **codec.to_plain(sweep)}


def write_sweep(sweep: ShapeSweep, path: Path) -> None:
    """Write a sweep as JSON, whole or not at all; `ShapeError` where the file cannot be written."""
    write_json(path, to_plain(sweep), ShapeError)


def read_sweep(path: Path) -> ShapeSweep:
    """Return the sweep that a file holds; `ShapeError` where it cannot be read, or holds none."""
    todo = "expected what 'perfsuite sweep --output FILE' writes"
    return codec.read_json(path, ShapeSweep, ShapeError, todo, schema=SCHEMA, is_closed=True)


#: The columns, which are the keys of the JSON's points.
COLUMNS = tuple(field.name for field in fields(SweepPoint))


def write_sweep_csv(sweep: ShapeSweep, path: Path) -> None:
    """Write all points, what is not known empty; `PerfsuiteError` where the file cannot be written."""

    def fill(out: TextIO) -> None:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(point) for point in sweep.points)

    write_whole(path, fill, PerfsuiteError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSetting:
    """Cases that differ in one dimension, in the order of its sizes."""

    cases: tuple[ShapeCase, ...]
    swept: str

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(case.shape.of(self.swept) for case in self.cases)

    @property
    def step(self) -> int | None:
        """By how much the swept dimension is padded, 1 where it is not; None where nobody knows, as of ggml."""
        return None if self.cases[0].tiling is None else dimension_steps(self.cases[0]).get(self.swept, 1)


def expected_sweep(setting: SweepSetting) -> ShapeSweep:
    """Return a sweep that has expectations alone, none where no tile is known."""
    case = setting.cases[0]
    points = tuple(_points(setting))
    efficiencies = [each for point in points if (each := point.expected_efficiency_ratio) is not None]
    return ShapeSweep(
        device="",
        fingerprint={},
        subject=case.subject.value,
        operation=case.operation.value,
        type=case.shape.type,
        tile=None if case.tiling is None else case.tiling.tile,
        vector=None if case.tiling is None else case.tiling.vector,
        sizes={name: case.shape.of(name) for name in case.operation.dimensions if name != setting.swept},
        swept=setting.swept,
        step=setting.step,
        n_rounds=0,
        points=points,
        expected_mean_efficiency_ratio=fmean(efficiencies) if efficiencies else None,
    )


def _points(setting: SweepSetting) -> Sequence[SweepPoint]:
    if setting.step is None:
        return [SweepPoint(size=size) for size in setting.sizes]
    last = _padded(setting.cases[-1], setting.swept).flops
    return [
        SweepPoint(
            size=case.shape.of(setting.swept),
            expected_time_ratio=_padded(case, setting.swept).flops / last,
            expected_efficiency_ratio=case.shape.flops / _padded(case, setting.swept).flops,
        )
        for case in setting.cases
    ]


def _padded(case: ShapeCase, swept: str) -> OperationShape:
    """Return the shape with the swept dimension padded: what the others waste is the same at each size."""
    return case.shape.with_sizes(**{swept: padded_shape(case).of(swept)})
