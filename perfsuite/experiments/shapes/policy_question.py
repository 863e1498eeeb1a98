"""What a policy is asked: one operation with fixed sizes, the sizes of the dimension that decides, and the choices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.policy_record import Choice, Decision, PolicyTable
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape, block_values
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject, Tiling

#: ggml's two sides, the processor first: where they tie, nothing is offloaded.
BACKENDS = (Choice(subject=Subject.GGML_CPU), Choice(subject=Subject.GGML_OPENCL))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyQuestion:
    """A grid of choices and sizes."""

    decides: Decision
    #: All sizes but that of the deciding dimension count.
    shape: OperationShape
    dimension: str
    #: Of the deciding dimension, ascending.
    sizes: tuple[int, ...]
    choices: tuple[Choice, ...]

    def __post_init__(self) -> None:
        """Refuse sizes that the operation cannot have, by `ShapeError`."""
        for size in self.sizes:
            self.shape_at(size)

    def shape_at(self, size: int) -> OperationShape:
        return self.shape.with_sizes(**{self.dimension: size})

    def case(self, choice: Choice, size: int) -> ShapeCase:
        tiling = None
        if choice.tile is not None and choice.vector is not None:
            tiling = Tiling(tile=choice.tile, vector=choice.vector)
        return ShapeCase(subject=choice.subject, shape=self.shape_at(size), tiling=tiling)

    @property
    def step(self) -> int:
        """What sizes are whole multiples of: a block, where the deciding dimension is the inner one."""
        is_inner = self.dimension == self.shape.operation.inner_dimension
        return block_values(self.shape.type) if is_inner else 1


def tilings(tiles: Iterable[int], vectors: Iterable[int]) -> tuple[Choice, ...]:
    """Return the suite's kernels whose vectors are no wider than the tile; `ShapeError` where there is none."""
    widths = tuple(vectors)
    found = [Tiling(tile=tile, vector=vector) for tile in tiles for vector in widths if vector <= tile]
    if not found:
        raise ShapeError(f"vectors of {', '.join(map(str, widths))}: all are wider than the tiles")
    return tuple(Choice(subject=Subject.TILED, tile=each.tile, vector=each.vector) for each in found)


def question_of(table: PolicyTable) -> PolicyQuestion:
    """Return what a table answers, with the choices that it names; `ShapeError` where it is about what there is not."""
    known = [each.value for each in Operation]
    if table.operation not in known:
        raise ShapeError(f"{table.title}: operation {table.operation!r} is none of {', '.join(known)}")
    sizes = {**table.fixed, table.dimension: table.measured_sizes[0]}
    question = PolicyQuestion(
        decides=table.decides,
        shape=OperationShape.of_sizes(Operation(table.operation), table.type, sizes),
        dimension=table.dimension,
        sizes=table.measured_sizes,
        choices=tuple(dict.fromkeys((table.default, table.worst, *(row.choice for row in table.rows)))),
    )
    for choice in question.choices:
        question.case(choice, question.sizes[0])
    return question
