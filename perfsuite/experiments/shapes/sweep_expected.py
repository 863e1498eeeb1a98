"""The expectation of a sweep: the tiling model at each size, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from perfsuite.expectation.shapes.floor import dimension_steps, padded_shape
from perfsuite.experiments.shapes.sweep_record import ShapeSweep, SweepPoint
from perfsuite.workload.shapes.operation_shape import OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase


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
