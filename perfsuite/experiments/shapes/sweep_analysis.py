"""A sweep as a whole: times and efficiencies beside the tiling model's, the steps, and how well they agree."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from math import isfinite
from statistics import fmean
from typing import NamedTuple

from perfsuite.errors import MeasurementError
from perfsuite.experiments.shapes.sweep import SweptCase
from perfsuite.experiments.shapes.sweep_jumps import (
    compare_steps,
    find_jumps,
    local_noise_ratios,
    noise_ratio,
    period_of,
    rank_correlation,
    roughness_ratio,
)
from perfsuite.experiments.shapes.sweep_record import ShapeSweep, SweepSetting, expected_sweep
from perfsuite.measure.shapes.meter import BenchDescription

#: The part of the samples that lie below the estimate, and those that take its place where it falls between two modes.
QUARTILE = 0.25
_PARTS = (QUARTILE, 0.125, 0.5)

#: Another part is better when neighbours differ by less than this share of what they do by the quartile.
_BETTER_RATIO = 0.5

#: The part of the estimates that their intervals may miss.
_MISSED_PART = 0.05


class Estimate(NamedTuple):
    """A time with its interval of 95 %, ns."""

    time_ns: float
    lower_ns: float
    upper_ns: float


def choose_part(samples_ns: Sequence[Sequence[int]]) -> float:
    """Return which quantile to take of the samples of all sizes, which are in the order of their sizes.

    The lower quartile: what disturbs a launch only adds to its time, so that the upper half of the rounds tells of the
    machine, and the least sample is a single one that falls with the number of rounds. Where others use the machine,
    though, times have two modes, with all of its processors and with half of them, and any quantile that falls between
    the modes jumps from one to the other as chance has it. Then it is the eighth or the median, if neighbouring sizes
    differ less than half as much with it. That knows nothing of a tile, and is the same for all sizes.
    """
    rough = {part: roughness_ratio([estimate(each, part).time_ns for each in samples_ns]) for part in _PARTS}
    best = min(rough, key=lambda part: rough[part])
    return best if rough[best] < _BETTER_RATIO * rough[QUARTILE] else QUARTILE


def estimate(samples_ns: Sequence[int], part: float = QUARTILE) -> Estimate:
    """Return a quantile of the samples, and between which of them it lies.

    The interval holds with 95 % whatever the distribution: from sample l to sample u in their order, where of n rounds
    at least l and fewer than u lie below the quantile, by the binomial distribution of n and the part. Of few rounds
    even the least may lie above a low quantile (of the quartile, of fewer than 13); it is the lower end then.

    *Source*: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, 2003, section 7.1.
    """
    ordered = sorted(samples_ns)
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    time_ns = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    first, last = _ranks(len(ordered), part)
    return Estimate(time_ns=time_ns, lower_ns=float(ordered[first - 1]), upper_ns=float(ordered[last - 1]))


@cache
def _ranks(n: int, part: float) -> tuple[int, int]:
    shares = [_share(n, below, part) for below in range(n + 1)]
    n_low = bisect_right(list(accumulate(shares)), _MISSED_PART / 2)
    n_high = bisect_right(list(accumulate(reversed(shares))), _MISSED_PART / 2)
    return max(n_low, 1), min(n + 1 - n_high, n)


def _share(n: int, below: int, part: float) -> float:
    """Return the chance that so many of n samples lie below; by logarithms, for the factors are beyond floats."""
    ways = math.lgamma(n + 1) - math.lgamma(below + 1) - math.lgamma(n - below + 1)
    return math.exp(ways + below * math.log(part) + (n - below) * math.log1p(-part))


def analysed_sweep(
    setting: SweepSetting, swept: Sequence[SweptCase], description: BenchDescription, *, n_rounds: int
) -> ShapeSweep:
    """Return what was found of each size, and of all of them.

    The efficiency of a size is ``(flops / time) / best``, with the best ``flops / time`` of the sizes that are whole
    tiles, or of all where none is; what the other dimensions waste is in both. `MeasurementError` where not one size
    was measured.
    """
    measured = [(each.case.shape.of(setting.swept), each) for each in swept if each.missing is None]
    if not measured:
        raise MeasurementError(f"{setting.cases[0].case_id} and on: no size was measured; {swept[0].missing}")
    part = choose_part([each.samples_ns for _, each in measured])
    times = {size: estimate(each.samples_ns, part) for size, each in measured}
    rates = {size: each.case.shape.flops / times[size].time_ns for size, each in measured}
    step, expected = setting.step, expected_sweep(setting)
    best = max([rate for size, rate in rates.items() if size % (step or 1) == 0] or rates.values())
    sizes, times_ns = [*times], [each.time_ns for each in times.values()]
    efficiencies = [rate / best for rate in rates.values()]
    points = []
    for point, each in zip(expected.points, swept, strict=True):
        if (deviation := each.deviation) is not None:
            error_norm = deviation.error_norm if isfinite(deviation.error_norm) else None
            point = replace(point, error_norm=error_norm, is_correct=deviation.is_correct)
        found = {} if each.missing else {**times[point.size]._asdict(), "efficiency_ratio": rates[point.size] / best}
        points.append(replace(point, missing=each.missing, **found))
    known = [point for point in points if point.size in times]
    model = [point.expected_efficiency_ratio or 0.0 for point in known]
    jumps, has_model = find_jumps(sizes, times_ns), step is not None
    return replace(
        expected,
        device=description.device,
        fingerprint=dict(description.fingerprint),
        n_rounds=n_rounds,
        quantile=part,
        points=tuple(points),
        mean_efficiency_ratio=fmean(efficiencies),
        rank_correlation=rank_correlation(efficiencies, model) if has_model else None,
        time_rank_correlation=(
            rank_correlation(times_ns, [point.expected_time_ratio or 0.0 for point in known]) if has_model else None
        ),
        noise_ratio=noise_ratio(times_ns),
        jumps=jumps,
        period=period_of(jumps, sizes),
        tile_steps=compare_steps(jumps, sizes, step, local_noise_ratios(times_ns)) if step and step > 1 else None,
    )
