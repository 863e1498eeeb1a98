"""How the shape of a verdict is measured again."""

from __future__ import annotations

import shlex

from perfsuite.expectation.shapes.floor import dimension_steps
from perfsuite.experiments.shapes.shape_property import ShapeVerdict
from perfsuite.experiments.shapes.sweep_sizes import size_option
from perfsuite.workload.shapes.operation_shape import block_values
from perfsuite.workload.shapes.shape_case import ShapeCase


def sweep_command(verdict: ShapeVerdict, device: str, *, platform: str | None = None) -> str:
    """Return the command that sweeps from the shape of a verdict to the one that it was compared with.

    Where the two differ in several dimensions, the sweep runs over one of them: the inner one, or else the growing one.
    A shape that was compared with no other is swept along the growing dimension, one step far.
    """
    case = ShapeCase.from_id(verdict.case_id)
    against = None if verdict.against_id is None else ShapeCase.from_id(verdict.against_id)
    swept, last = _sweep(case, against)
    sizes = {name: f"{case.shape.of(name)}" for name in case.operation.dimensions}
    step = block_values(case.shape.type) if swept == case.operation.inner_dimension else 1
    sizes[swept] += f":{last}" if step == 1 else f":{last}:{step}"
    words = [f"perfsuite sweep {case.operation.value} --device {device}"]
    words += [f"--opencl-platform {shlex.quote(platform)}"] if platform is not None else []
    words += [f"--subject {case.subject.value} --type {case.shape.type}"]
    words += [f"--tile {case.tiling.tile} --vector {case.tiling.vector}"] if case.tiling is not None else []
    words += [f"{size_option(name)} {size}" for name, size in sizes.items()]
    return " ".join(words)


def _sweep(case: ShapeCase, against: ShapeCase | None) -> tuple[str, int]:
    operation, sizes = case.operation, case.shape
    if against is not None:
        for name in (operation.inner_dimension, operation.growing_dimension, *operation.dimensions):
            if against.shape.of(name) > sizes.of(name):
                return name, against.shape.of(name)
    growing = operation.growing_dimension
    return growing, sizes.of(growing) + dimension_steps(case)[growing]
