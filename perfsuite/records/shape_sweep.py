"""A sweep over one dimension of an operation: what each size took, and what is seen in the whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import ShapeError
from perfsuite.records.json_file import write_json

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One size; what was not measured, or is not expected of it, is None."""

    size: int
    time_ns: float | None = None
    #: Where the time lies with a confidence of 95 %, as far as the rounds tell.
    lower_ns: float | None = None
    upper_ns: float | None = None
    #: Work of the padded size over that of the padded last size of the sweep.
    expected_time_ratio: float | None = None
    #: Useful FLOPs a second over the best that whole tiles reached in the sweep.
    efficiency_ratio: float | None = None
    #: Size over padded size.
    expected_efficiency_ratio: float | None = None
    #: Of the output from NumPy's, None where it was not verified or is no number; and whether it is within tolerance.
    error_norm: float | None = None
    is_correct: bool | None = None
    #: Why it has no time.
    missing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A step between two neighbouring sizes."""

    #: The last size before it, and the first behind it.
    size: int
    next_size: int
    #: Up is positive.
    height_ns: float
    #: Over the time before it.
    height_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSteps:
    """The jumps that were found, against those that a tile should make."""

    #: By how much the dimension is padded.
    step: int
    #: Multiples of the step with a jump, and those without one although the noise would have let it be seen.
    found: tuple[int, ...]
    missed: tuple[int, ...]
    #: Multiples without a jump that was found, where the noise would have hidden it.
    hidden: tuple[int, ...]
    #: Sizes of jumps up that are at no multiple.
    extra: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSweep:
    """A sweep with its setting."""

    #: Empty where nothing was measured.
    device: str
    fingerprint: tuple[tuple[str, str], ...]
    subject: str
    operation: str
    #: How B is stored.
    type: str
    #: None where the subject cuts as it sees fit.
    tile: int | None
    vector: int | None
    #: Of the dimensions that are not swept.
    sizes: tuple[tuple[str, int], ...]
    swept: str
    #: By how much the swept dimension is padded at once, 1 where it is not; None where nobody knows.
    step: int | None
    n_rounds: int
    points: tuple[SweepPoint, ...]
    #: Which quantile of a size's samples is its time; the same for all sizes.
    quantile: float | None = None
    #: Spearman's, of measured and expected efficiency.
    rank_correlation: float | None = None
    #: The same of measured and expected time; near 1 for anything that grows.
    time_rank_correlation: float | None = None
    mean_efficiency_ratio: float | None = None
    expected_mean_efficiency_ratio: float | None = None
    #: Standard deviation of a time about its neighbours, over the time.
    noise_ratio: float | None = None
    jumps: tuple[Jump, ...] = ()
    #: None where no tile is known.
    tile_steps: TileSteps | None = None
    #: The distance of the jumps, where they have one.
    period: int | None = None

    @property
    def measured(self) -> tuple[SweepPoint, ...]:
        """The points that have a time."""
        return tuple(point for point in self.points if point.time_ns is not None)

    @property
    def title(self) -> str:
        """What was swept, such as ``bmm n1:512 b32 m1 k128 f32, tile 64, vector 8``."""
        swept = f"{self.swept}{self.points[0].size}:{self.points[-1].size}"
        cut = "" if self.tile is None else f", tile {self.tile}, vector {self.vector}"
        return f"{self.operation} {swept} {' '.join(f'{name}{size}' for name, size in self.sizes)} {self.type}{cut}"


def to_plain(sweep: ShapeSweep) -> dict[str, Any]:
    """Return a sweep as JSON has it."""
    plain = asdict(sweep)
    points = plain.pop("points")
    return {
        "schema": SCHEMA,
        **plain,
        "fingerprint": dict(sweep.fingerprint),
        "sizes": dict(sweep.sizes),
        "points": points,
    }


def from_plain(plain: Mapping[str, Any]) -> ShapeSweep:
    """Return the sweep that JSON holds.

    Raises
    ------
    ShapeError
        It is of another schema, or no sweep at all.
    """
    if plain.get("schema") != SCHEMA:
        raise ShapeError(f"sweep: schema {plain.get('schema')!r}, expected {SCHEMA}; sweep again")
    try:
        return _sweep({name: value for name, value in plain.items() if name != "schema"})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ShapeError(f"sweep: not one ({error}); expected what 'perfsuite sweep --json' writes") from error


def write_sweep(sweep: ShapeSweep, path: Path) -> None:
    """Write a sweep as JSON, whole or not at all; `ShapeError` where the file cannot be written."""
    write_json(path, to_plain(sweep), ShapeError)


def read_sweep(path: Path) -> ShapeSweep:
    """Return the sweep that a file holds; `ShapeError` where it cannot be read, or holds none."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ShapeError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ShapeError(f"{path}: is no JSON ({error}); expected what 'perfsuite sweep --json FILE' writes") from error
    try:
        return from_plain(plain if isinstance(plain, dict) else {})
    except ShapeError as error:
        raise ShapeError(f"{path}: {error}") from None


def _sweep(plain: dict[str, Any]) -> ShapeSweep:
    steps = plain.pop("tile_steps")
    return ShapeSweep(
        fingerprint=tuple(plain.pop("fingerprint").items()),
        sizes=tuple(plain.pop("sizes").items()),
        points=_all(SweepPoint, plain.pop("points")),
        jumps=_all(Jump, plain.pop("jumps")),
        tile_steps=None if steps is None else TileSteps(**{name: _sizes(each) for name, each in steps.items()}),
        **plain,
    )


def _all(record: Callable[..., Any], plains: list[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(record(**each) for each in plains)


def _sizes(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
