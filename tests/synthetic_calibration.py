"""Calibrations of a device that follows a known law exactly, so that forecasts can be checked without measuring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from perfsuite.expectation.timing.calibration import Calibration, CalibrationPoint, Composition, TokenPhase
from perfsuite.expectation.timing.features import features
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape

Law = Callable[[OperatorShape], float]

N_THREADS = 2

#: Weights of the terms, the dispatch first, and the power of the rows by which all of them grow.
WEIGHTS = (500.0, 0.02, 0.3, 0.004, 0.01)
ROWS_POWER = 0.9


def lawful_ns(shape: OperatorShape) -> float:
    """Return the time of an operator by the law: a sum of the terms of its kind, times a power of its rows."""
    terms = features(shape, shape.n_tokens, N_THREADS)
    summed = sum(weight * term for weight, term in zip(WEIGHTS, terms, strict=False))
    return float(shape.n_tokens**ROWS_POWER * summed)


def points_of(shapes: Iterable[OperatorShape], law: Law = lawful_ns) -> list[CalibrationPoint]:
    """Measure shapes on a device that takes what the law says, in every round."""
    return [CalibrationPoint(shape=shape, rounds_ns=(law(shape),) * 3) for shape in shapes]


def composition(
    shapes: Mapping[OperatorShape, int],
    *,
    ratio: float = 1.0,
    rest_ns: float = 0.0,
    phase: str = "decode",
    law: Law = lawful_ns,
) -> Composition:
    """Compose operators that take `ratio` times as long within the engine, with as much beside them in all."""
    return Composition(
        name="own",
        phase=phase,
        shapes=tuple(shapes),
        counts=tuple(shapes.values()),
        shapes_ns=tuple((law(shape) * count * ratio,) * 3 for shape, count in shapes.items()),
        rest_ns=(rest_ns,) * 3,
    )


def token_phase(phase: str, n_vocab: int, time_ns: float) -> TokenPhase:
    """Return what follows an evaluation, the same in every process."""
    return TokenPhase(name="own", phase=phase, n_vocab=n_vocab, rounds_ns=(time_ns,) * 3)


def calibration(
    *compositions: Composition,
    points: Iterable[CalibrationPoint] | None = None,
    token_phases: Iterable[TokenPhase] = (),
    fingerprint: Mapping[str, str] | None = None,
    n_threads: int = N_THREADS,
) -> Calibration:
    return Calibration(
        n_threads=n_threads,
        engine="llama.cpp 1, build 0123456789abcdef",
        recorded_at="2025-01-02T03:04:05+00:00",
        fingerprint={"soc": "A"} if fingerprint is None else fingerprint,
        points=tuple(points_of(standard_shapes()) if points is None else points),
        compositions=compositions,
        token_phases=tuple(token_phases),
    )
