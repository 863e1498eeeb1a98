"""Sweeps over shapes on a simulated device."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from perfsuite.expectation.operators.tiling import padded
from perfsuite.experiments.shapes.sweep import measure_sweep
from perfsuite.experiments.shapes.sweep_analysis import analysed_sweep
from perfsuite.experiments.shapes.sweep_record import ShapeSweep, SweepSetting
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject, Tiling

#: What a size of n takes, a whole tile of 64 a hundred times as much.
_SIZE_NS = 2_000.0


def bmm_setting(sizes: Iterable[int] = range(1, 513), *, tile: int | None = 64) -> SweepSetting:
    """A BMM over n; by ggml on the processor where there is no tile."""
    tiling = None if tile is None else Tiling(tile=tile, vector=8)
    return SweepSetting(
        cases=tuple(
            ShapeCase(
                subject=Subject.GGML_CPU if tiling is None else Subject.TILED,
                shape=OperationShape(operation=Operation.BMM, type="f32", sizes=(32, 1, n, 128)),
                tiling=tiling,
            )
            for n in sizes
        ),
        swept="n",
    )


def staircase(step: int) -> Callable[[ShapeCase], float]:
    """A time that grows with whole steps of n."""
    return lambda case: _SIZE_NS * padded(case.shape.of("n"), step)


def line(case: ShapeCase) -> float:
    return _SIZE_NS * case.shape.of("n")


def swept(setting: SweepSetting, meters: SimulatedMeters, *, n_rounds: int = 15, verifies: bool = False) -> ShapeSweep:
    meter = meters.resident()
    found = measure_sweep(
        meter, setting.cases, n_rounds=n_rounds, seed=0, verifies=verifies, told=lambda stage, n_done, n_all: None
    )
    return analysed_sweep(setting, found, meter.description, n_rounds=n_rounds)
