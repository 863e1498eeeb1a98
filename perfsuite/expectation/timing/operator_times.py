"""Forecasts the time of any operator from those that were measured alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.expectation.op_rules import ELSE, rule_of
from perfsuite.expectation.timing.calibration import CalibrationPoint
from perfsuite.expectation.timing.features import family, features, shape_cost, standing_in
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.records.ceilings import Ceilings
from perfsuite.units import NS_PER_S
from perfsuite.workload.ggml_types import GGML_TYPES

#: No fit is believed to be better than this: what one process of the same work differs from the next by.
LEAST_SPREAD_RATIO = 0.03
#: What a stand-in may be wrong by: an operator or a type that was never measured.
STAND_IN_SPREAD_RATIO = 0.5

#: Standard deviation over median absolute deviation of a normal distribution.
_NORMAL_MAD = 1.4826

Family = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """The forecast of one operator."""

    time_ns: float
    #: Standard deviation of its logarithm.
    spread_ratio: float
    #: Operators of one fit are wrong together.
    family: Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The fit of one family: at each number of rows, a sum of terms with weights of 0 or more."""

    #: Rows of activations, ascending, with the weights of the terms there.
    levels: tuple[tuple[int, tuple[float, ...]], ...]
    #: Deviation of the logarithm of points that their fit did not see; from the median, for at the ends of the grid a
    #: point that is left out is beyond all others.
    spread_ratio: float
    n_points: int

    def time_ns(self, shape: OperatorShape, n_threads: int) -> float:
        """Interpolate the logarithm of the time between the logarithms of the levels; beyond them, go on alike."""
        times = [(math.log(n), math.log(_summed(weights, features(shape, n, n_threads)))) for n, weights in self.levels]
        if len(times) == 1:
            return math.exp(times[0][1]) * shape.n_tokens / self.levels[0][0]
        at = math.log(shape.n_tokens)
        upper = next((i for i, (level, _) in enumerate(times) if level >= at and i > 0), len(times) - 1)
        (x0, y0), (x1, y1) = times[upper - 1], times[upper]
        return math.exp(y0 + (y1 - y0) * (at - x0) / (x1 - x0))


class OperatorTimes:
    """The fits of all families that a calibration measured."""

    def __init__(self, points: Iterable[CalibrationPoint], *, n_threads: int) -> None:
        grouped: dict[Family, list[CalibrationPoint]] = defaultdict(list)
        for point in points:
            grouped[family(point.shape)].append(point)
        if not grouped:
            raise MeasurementError("calibration: no operator was measured; run 'perfsuite calibrate' again")
        self._n_threads = n_threads
        self.fits: Mapping[Family, Fit] = {name: _fit(members, n_threads) for name, members in grouped.items()}

    def time(self, shape: OperatorShape) -> OperatorTime:
        """Forecast one operator, by a stand-in where neither it nor its type was measured."""
        wanted = family(shape)
        found = self._nearest(wanted)
        is_own = found == wanted or found[0] == wanted[0] == "GET_ROWS"
        fit = self.fits[found]
        known = shape if is_own else standing_in(shape, found[0].partition("/")[0], found[1])
        spread = fit.spread_ratio if is_own else max(fit.spread_ratio, STAND_IN_SPREAD_RATIO)
        return OperatorTime(time_ns=fit.time_ns(known, self._n_threads), spread_ratio=spread, family=found)

    def _nearest(self, wanted: Family) -> Family:
        if wanted in self.fits:
            return wanted
        for op in (wanted[0], rule_of(wanted[0]).stand_in, ELSE):
            types = [type_name for known, type_name in self.fits if known == op]
            if types:
                return op, min(types, key=lambda type_name: _distance(type_name, wanted[1]))
        raise MeasurementError(f"calibration: nothing stands in for {wanted[0]}; run 'perfsuite calibrate' again")


def _distance(one: str, other: str) -> float:
    """Return how far two types are apart in the bytes of an element, on a logarithmic scale."""
    first, second = (GGML_TYPES[name.upper()] for name in (one, other))
    ratio = first.block_bytes / first.block_values * second.block_values / second.block_bytes
    return abs(math.log(ratio))


def _fit(points: Sequence[CalibrationPoint], n_threads: int) -> Fit:
    by_level: dict[int, list[CalibrationPoint]] = defaultdict(list)
    for point in points:
        by_level[point.shape.n_tokens].append(point)
    errors = [error for members in by_level.values() for error in _left_out_errors(members, n_threads)]
    spread = _NORMAL_MAD * median(map(abs, errors)) if errors else STAND_IN_SPREAD_RATIO
    return Fit(
        levels=tuple((n, _weights(by_level[n], n_threads)) for n in sorted(by_level)),
        spread_ratio=max(LEAST_SPREAD_RATIO, spread),
        n_points=len(points),
    )


def _weights(points: Sequence[CalibrationPoint], n_threads: int) -> tuple[float, ...]:
    times = [median(point.rounds_ns) for point in points]
    terms = [features(point.shape, point.shape.n_tokens, n_threads) for point in points]
    relative = [[term / time_ns for term in row] for row, time_ns in zip(terms, times, strict=True)]
    return nonnegative_weights(relative, [1.0] * len(points))


def _left_out_errors(points: Sequence[CalibrationPoint], n_threads: int) -> list[float]:
    """Return the logarithm of forecast over measurement, of each point by a fit to the others."""
    if len(points) < 3:
        return []
    errors = []
    for at, point in enumerate(points):
        weights = _weights([*points[:at], *points[at + 1 :]], n_threads)
        forecast = _summed(weights, features(point.shape, point.shape.n_tokens, n_threads))
        errors.append(math.log(forecast / median(point.rounds_ns)))
    return errors


def _summed(weights: Sequence[float], terms: Sequence[float]) -> float:
    return max(1.0, sum(weight * term for weight, term in zip(weights, terms, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What an operator reaches of the peaks of arithmetic and bandwidth; each a ratio, LIFE's ec and em."""

    shape: OperatorShape
    time_ns: float
    flops_per_s: float
    bytes_per_s: float
    compute_ratio: float
    memory_ratio: float
    #: Standard deviation of the logarithm of the time, and so of both ratios.
    spread_ratio: float


def efficiency(shape: OperatorShape, times: OperatorTimes, ceilings: Ceilings) -> Efficiency:
    """Compare the forecast time of an operator with the multiply-add peak and with the bandwidth of memory.

    ``ec = FLOPs / (time x peak)``, ``em = bytes / (time x bandwidth)``. Products of 8-bit integers may reach an ec
    above 1, for the peak is that of 32-bit floats; an em above 1 says that a cache helped.
    """
    time, cost = times.time(shape), shape_cost(shape)
    seconds = time.time_ns / NS_PER_S
    bandwidth = ceilings.bandwidths[-1].read_bytes_per_s
    return Efficiency(
        shape=shape,
        time_ns=time.time_ns,
        flops_per_s=cost.flops / seconds,
        bytes_per_s=cost.moved_bytes / seconds,
        compute_ratio=cost.flops / seconds / ceilings.fp32_flops_per_s,
        memory_ratio=cost.moved_bytes / seconds / bandwidth,
        spread_ratio=time.spread_ratio,
    )


def nonnegative_weights(terms: Sequence[Sequence[float]], values: Sequence[float]) -> tuple[float, ...]:
    """Return weights w of 0 or more that make |terms w - values| least.

    Each term is scaled by its largest value first. `scipy.optimize.nnls` is quicker, but from SciPy 1.12 to 1.15 it may
    stop at a point that is not the least.
    """
    # Imported here because scipy is slow to import and the plugin is loaded by every run of pytest.
    from scipy.optimize import lsq_linear

    columns = np.asarray(terms, dtype=float)
    scale = np.max(np.abs(columns), axis=0)
    scale[scale == 0.0] = 1.0
    found = lsq_linear(columns / scale, np.asarray(values, dtype=float), bounds=(0.0, np.inf), method="bvls", tol=1e-12)
    # The bounds hold but for a rounding, which would make more of a term cost less.
    return tuple(max(0.0, float(weight)) for weight in found.x / scale)
