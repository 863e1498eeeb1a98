"""What a calibration measured: single operators, and the engine's own share around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.records.codec import Amount, Positive, Size, from_plain, to_plain

#: Raised whenever a field changes its meaning.
SCHEMA = 2

#: A time in each round or process, ns.
Rounds: TypeAlias = Annotated[tuple[Positive, ...], Meta(min_length=1, description="one time above 0 or more")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPoint:
    """One operator alone."""

    shape: OperatorShape
    rounds_ns: Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """One phase of a small architecture of the calibration's own: what operators add up to within the engine."""

    #: Weights by their name.
    name: str
    #: ``prefill`` or ``decode``.
    phase: str
    #: The operators of the phase, each shape once, and how often it occurs.
    shapes: tuple[OperatorShape, ...]
    counts: tuple[Size, ...]
    #: For each shape: the time of all its occurrences together, in each process.
    shapes_ns: Annotated[tuple[Rounds, ...], Meta(min_length=1)]
    #: The phase less its operators, in each process, ns.
    rest_ns: tuple[Amount, ...]

    def __post_init__(self) -> None:
        """Refuse what has not a count for each shape, and a time for each shape and process."""
        n_shapes, n_processes = len(self.shapes), len(self.rest_ns)
        if len(self.counts) != n_shapes or [len(each) for each in self.shapes_ns] != [n_processes] * n_shapes:
            raise MeasurementError(f"expected a count and {n_processes} times for each of {n_shapes} shapes")

    @property
    def n_operators(self) -> int:
        """Operators of the phase, layers and all."""
        return sum(self.counts)

    @property
    def operators_ns(self) -> tuple[float, ...]:
        """All operators together, in each process, ns."""
        return tuple(sum(times) for times in zip(*self.shapes_ns, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPhase:
    """What follows each evaluation of an architecture of the calibration's own: copy, softmax or sampling."""

    name: str
    phase: str
    n_vocab: Size
    rounds_ns: Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Everything that forecasts of one device, one engine and one number of threads stand on."""

    n_threads: Size
    engine: str
    recorded_at: str
    fingerprint: Mapping[str, str]
    points: tuple[CalibrationPoint, ...]
    compositions: tuple[Composition, ...]
    token_phases: tuple[TokenPhase, ...]
    #: Bytes over which the matrices of an operator of few rows were spread; files of before do not say it.
    spread_bytes: Size = 96 << 20
    #: Whether only what one workload needs was measured; files of before do not say it.
    is_quick: bool = False

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        return {"schema": SCHEMA, **to_plain(self)}

    @classmethod
    def from_plain(cls, plain: object) -> Calibration:
        """Build from what `to_plain` returned; anything else is a MeasurementError."""
        todo = "run 'perfsuite calibrate' again"
        return from_plain(plain, cls, "calibration", MeasurementError, todo, schema=SCHEMA, is_closed=True)
