"""A sweep over one dimension of an operation: what each size took, and what is seen in the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import ShapeError
from perfsuite.records import codec
from perfsuite.records.codec import Count, Number, Size
from perfsuite.records.whole_file import write_json

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
    todo = "expected what 'perfsuite sweep --json FILE' writes"
    return codec.read_json(path, ShapeSweep, ShapeError, todo, schema=SCHEMA, is_closed=True)
