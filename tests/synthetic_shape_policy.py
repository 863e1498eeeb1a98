"""Made-up policies by shape, and questions to simulated devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from perfsuite.experiments.shapes.policy import measure_policy
from perfsuite.experiments.shapes.policy_question import BACKENDS, PolicyQuestion, tilings
from perfsuite.experiments.shapes.policy_record import (
    NO_GAIN,
    Choice,
    Decision,
    Gain,
    LeftOut,
    MeasuredSubject,
    PolicyRow,
    PolicyTable,
    ShapePolicy,
)
from perfsuite.experiments.shapes.policy_rounds import RoundDesign
from perfsuite.testing.shape_meters import SimulatedMeters, padded_time_ns
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

CPU, OPENCL = BACKENDS
SIZES = (1, 8, 64, 512)
FIBONACCI = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377)

GEMV = OperationShape.of_sizes(Operation.GEMV, "f16", {"n": 1, "k": 512})

#: The processor's time for a launch and for a row; the device takes longer for the one and half of the other.
_LAUNCH_NS, _ROW_NS = 5_000.0, 100.0


def gain(ratio: float, spread: float = 1.1) -> Gain:
    """Return a gain with an interval of the same factor both ways."""
    return Gain(ratio=ratio, lower_ratio=ratio / spread, upper_ratio=ratio * spread)


def policy_row(least: int, most: int, choice: Choice, **changes: Any) -> PolicyRow:
    row = PolicyRow(
        least=least,
        most=most,
        measured_least=least,
        measured_most=most,
        choice=choice,
        gain_over_default=NO_GAIN,
        gain_over_worst=gain(2.0),
    )
    return replace(row, **changes)


def policy_table(**changes: Any) -> PolicyTable:
    """Return a table that takes the processor up to 20 and the device above; the processor is the default."""
    rows = (
        policy_row(1, 20, CPU, measured_most=8),
        policy_row(21, 512, OPENCL, measured_least=64, gain_over_default=gain(1.5), gain_over_worst=NO_GAIN),
    )
    table = PolicyTable(
        decides=Decision.BACKEND,
        operation="gemv",
        type="f16",
        dimension="n",
        fixed={"k": 512},
        measured_sizes=SIZES,
        n_processes=4,
        default=CPU,
        worst=OPENCL,
        gain_over_default=gain(1.2),
        gain_over_worst=gain(1.4),
        rows=rows,
    )
    return replace(table, **changes)


def shape_policy(**changes: Any) -> ShapePolicy:
    small, large = tilings((8, 64), (8,))
    tiled = policy_table(
        decides=Decision.TILING,
        default=large,
        worst=small,
        rows=(policy_row(1, 512, large),),
        gain_over_default=NO_GAIN,
        left_out=(LeftOut(choice=tilings((16,), (4,))[0], reason="gemv/n1-k512/f16: no room"),),
    )
    subjects = tuple(
        MeasuredSubject(subject=each, device="simulated device", fingerprint={"device": "simulated device"})
        for each in Subject
    )
    policy = ShapePolicy(
        recorded_at="2025-01-01T00:00:00+00:00",
        suite_version="0.1",
        device="host",
        n_threads=2,
        subjects=subjects,
        tables=(tiled, policy_table()),
    )
    return replace(policy, **changes)


def tiling_question(**changes: Any) -> PolicyQuestion:
    """Ask for the tiling of a GEMV by its rows."""
    question = PolicyQuestion(
        decides=Decision.TILING,
        shape=GEMV,
        dimension="n",
        sizes=FIBONACCI,
        choices=tilings((8, 16, 32, 64), (4, 8, 16)),
    )
    return replace(question, **changes)


def backend_question(**changes: Any) -> PolicyQuestion:
    return tiling_question(**{"decides": Decision.BACKEND, "choices": BACKENDS, **changes})


def crossing_at(size: float) -> Callable[[ShapeCase], float]:
    """Return times of two sides that cross at a size of n: the device starts later and is twice as fast."""

    def time_ns(case: ShapeCase) -> float:
        n = case.shape.of("n")
        if case.subject is Subject.GGML_CPU:
            return _LAUNCH_NS + _ROW_NS * n
        return _LAUNCH_NS + _ROW_NS / 2 * (size + n)

    return time_ns


def backend_meters(time_ns: Callable[[ShapeCase], float], *, seed: int = 0, **changes: Any) -> dict[Subject, Any]:
    """Return simulated meters of ggml's two sides, whose processes differ by more than their samples."""
    noise = {"sigma": 0.03, "placement_sigma": 0.02, "process_sigma": 0.02, **changes}
    subjects = (Subject.GGML_CPU, Subject.GGML_OPENCL)
    return {
        subject: SimulatedMeters(time_ns=time_ns, seed=2 * seed + place, **noise)
        for place, subject in enumerate(subjects)
    }


def tiling_meters(*, seed: int = 0) -> dict[Subject, Any]:
    """Return a quiet device whose times go in steps of the tiles, so that gains are saws over the sizes."""

    def time_ns(case: ShapeCase) -> float:
        assert case.tiling is not None
        return padded_time_ns(case, launch_ns=2_000.0) * (1.0 + 2.0 / case.tiling.tile)

    return {Subject.TILED: SimulatedMeters(time_ns=time_ns, sigma=0.01, placement_sigma=0.005, seed=seed)}


def measured(question: PolicyQuestion, meters: dict[Subject, Any], *, seed: int = 0) -> PolicyTable:
    """Measure a table with as much effort as the command does."""
    return measure_policy(question, meters, design=RoundDesign(), seed=seed)[0]
