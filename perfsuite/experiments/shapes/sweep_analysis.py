"""A sweep as a whole: times and efficiencies beside the tiling model's, the steps, and how well they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from statistics import fmean

from perfsuite.errors import MeasurementError
from perfsuite.experiments.shapes.sweep import SweptCase
from perfsuite.experiments.shapes.sweep_estimate import choose_part, estimate
from perfsuite.experiments.shapes.sweep_expected import SweepSetting, expected_sweep
from perfsuite.experiments.shapes.sweep_jumps import find_jumps, local_noise_ratios, noise_ratio
from perfsuite.experiments.shapes.sweep_record import ShapeSweep, SweepPoint
from perfsuite.experiments.shapes.sweep_steps import compare_steps, period_of, rank_correlation
from perfsuite.measure.shapes.meter import BenchDescription


def analysed_sweep(
    setting: SweepSetting, swept: Sequence[SweptCase], description: BenchDescription, *, n_rounds: int
) -> ShapeSweep:
    """Return what was found of each size, and of all of them.

    The efficiency of a size is ``(flops / time) / best``, with the best ``flops / time`` of the sizes that are whole
    tiles, or of all where none is; what the other dimensions waste is in both.

    Raises
    ------
    MeasurementError
        Not one size was measured.
    """
    expected = expected_sweep(setting)
    part = choose_part([each.samples_ns for each in swept if each.missing is None])
    points = [_measured(point, each, part) for point, each in zip(expected.points, swept, strict=True)]
    if all(point.time_ns is None for point in points):
        raise MeasurementError(f"{setting.cases[0].case_id} and on: no size was measured; {swept[0].missing}")
    sweep = replace(
        expected,
        device=description.device,
        fingerprint=dict(description.fingerprint),
        n_rounds=n_rounds,
        quantile=part,
        points=_with_efficiencies(setting, points),
    )
    return _with_steps(setting, _with_correlations(sweep))


def _measured(point: SweepPoint, swept: SweptCase, part: float) -> SweepPoint:
    deviation = swept.deviation
    point = replace(
        point,
        missing=swept.missing,
        error_norm=deviation.error_norm if deviation is not None and isfinite(deviation.error_norm) else None,
        is_correct=None if deviation is None else deviation.is_correct,
    )
    if swept.missing is not None:
        return point
    found = estimate(swept.samples_ns, part)
    return replace(point, time_ns=found.time_ns, lower_ns=found.lower_ns, upper_ns=found.upper_ns)


def _with_efficiencies(setting: SweepSetting, points: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
    rates = [
        None if point.time_ns is None else case.shape.flops / point.time_ns
        for case, point in zip(setting.cases, points, strict=True)
    ]
    whole = [rate for rate, size in zip(rates, setting.sizes, strict=True) if rate and size % (setting.step or 1) == 0]
    best = max(whole or [rate for rate in rates if rate])
    return tuple(
        replace(point, efficiency_ratio=None if rate is None else rate / best)
        for point, rate in zip(points, rates, strict=True)
    )


def _with_correlations(sweep: ShapeSweep) -> ShapeSweep:
    both = [
        (point, point.time_ns, point.efficiency_ratio)
        for point in sweep.points
        if point.time_ns is not None and point.efficiency_ratio is not None
    ]
    sweep = replace(sweep, mean_efficiency_ratio=fmean(efficiency for _, _, efficiency in both))
    expected = [
        (time_ratio, efficiency)
        for point, _, _ in both
        if (time_ratio := point.expected_time_ratio) is not None
        and (efficiency := point.expected_efficiency_ratio) is not None
    ]
    if len(expected) < len(both):
        return sweep
    return replace(
        sweep,
        rank_correlation=rank_correlation([each for _, _, each in both], [each for _, each in expected]),
        time_rank_correlation=rank_correlation([each for _, each, _ in both], [each for each, _ in expected]),
    )


def _with_steps(setting: SweepSetting, sweep: ShapeSweep) -> ShapeSweep:
    sizes = [point.size for point in sweep.measured]
    times_ns = [point.time_ns for point in sweep.measured if point.time_ns is not None]
    jumps = find_jumps(sizes, times_ns)
    tile_steps = None
    if setting.step is not None and setting.step > 1:
        tile_steps = compare_steps(jumps, sizes, setting.step, local_noise_ratios(times_ns))
    return replace(
        sweep,
        noise_ratio=noise_ratio(times_ns),
        jumps=jumps,
        period=period_of(jumps, sizes),
        tile_steps=tile_steps,
    )
