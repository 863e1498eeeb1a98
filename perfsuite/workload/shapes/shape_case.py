"""Who computes an operation, cut into which tiles: what is measured and judged under one id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from perfsuite.errors import ShapeError
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape

#: The first part of each id.
SHAPE = "shape"

#: Tiles and vector widths of the suite's own kernels.
TILES = (8, 16, 32, 64)
VECTORS = (1, 2, 4, 8, 16)


class Subject(str, Enum):
    """Who computes."""

    #: The suite's own tiled OpenCL kernels.
    TILED = "tiled"
    #: ggml's operator on the processor, in a graph of its own.
    GGML_CPU = "ggml-cpu"
    #: ggml's operator on its OpenCL backend.
    GGML_OPENCL = "ggml-opencl"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Tiling:
    """How the suite's kernels cut their work."""

    #: Outputs of a work-group along each tiled dimension; for attention, positions of a step.
    tile: int
    #: Values that an item handles as one vector.
    vector: int

    def __post_init__(self) -> None:
        """Refuse what no kernel is built for."""
        if self.tile not in TILES or self.vector not in VECTORS or self.vector > self.tile:
            tiles, vectors = (", ".join(map(str, each)) for each in (TILES, VECTORS))
            raise ShapeError(
                f"tile {self.tile}, vector {self.vector}: expected a tile of {tiles} and a vector of {vectors}, "
                "no wider than the tile"
            )

    @property
    def id(self) -> str:
        """Such as ``tile64-vector8``."""
        return f"tile{self.tile}-vector{self.vector}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeCase:
    """An operation at a shape, by whom, and cut how."""

    subject: Subject
    shape: OperationShape
    #: None where the subject cuts as it sees fit, as ggml does.
    tiling: Tiling | None = None

    def __post_init__(self) -> None:
        """Refuse a tiling of ggml's operators, and the suite's kernels without one."""
        if (self.tiling is None) is (self.subject is Subject.TILED):
            wanted = "a tile and a vector" if self.subject is Subject.TILED else "no tile"
            raise ShapeError(f"{self.subject.value} {self.shape.id}: expected {wanted}")

    @property
    def operation(self) -> Operation:
        return self.shape.operation

    @property
    def case_id(self) -> str:
        """Such as ``shape/tiled/bmm/b32-m1-n512-k128/f16/tile64-vector8`` or ``shape/ggml-cpu/gemv/n64-k64/q8_0``."""
        parts = (SHAPE, self.subject.value, self.shape.id, *(() if self.tiling is None else (self.tiling.id,)))
        return "/".join(parts)

    @classmethod
    def from_id(cls, case_id: str) -> ShapeCase:
        """Return the case that an id names; `ShapeError` where it names none."""
        subjects = "|".join(each.value for each in Subject)
        tiling = r"/tile([0-9]{1,9})-vector([0-9]{1,9})"
        match = re.fullmatch(rf"{SHAPE}/({subjects})/(\w+/[\w-]+/\w+?)(?:{tiling})?", case_id)
        if match is None:
            raise ShapeError(
                f"{case_id}: not a shape's case id; expected {SHAPE}/{subjects}/<operation>/<sizes>/<type>, and "
                "/tile<T>-vector<V> for tiled"
            )
        cut = Tiling(tile=int(match[3]), vector=int(match[4])) if match[3] else None
        return cls(subject=Subject(match[1]), shape=OperationShape.from_id(match[2]), tiling=cut)
