"""What a calibration measured: single operators, and the engine's own share around them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.operator_shape import OperatorShape

#: Raised whenever a field changes its meaning.
SCHEMA = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPoint:
    """One operator alone: its time in each round, ns."""

    shape: OperatorShape
    rounds_ns: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """One phase of a small architecture of the calibration's own: what operators add up to within the engine."""

    #: Weights by their name.
    name: str
    #: ``prefill`` or ``decode``.
    phase: str
    #: The operators of the phase, each shape once, and how often it occurs.
    shapes: tuple[OperatorShape, ...]
    counts: tuple[int, ...]
    #: For each shape: the time of all its occurrences together, in each process, ns.
    shapes_ns: tuple[tuple[float, ...], ...]
    #: The phase less its operators, in each process, ns.
    rest_ns: tuple[float, ...]

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
    n_vocab: int
    #: Its time in each process, ns.
    rounds_ns: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Everything that forecasts of one device, one engine and one number of threads stand on."""

    n_threads: int
    engine: str
    recorded_at: str
    fingerprint: Mapping[str, str]
    points: tuple[CalibrationPoint, ...]
    compositions: tuple[Composition, ...]
    token_phases: tuple[TokenPhase, ...]
    #: Whether only what one workload needs was measured.
    is_quick: bool = False

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        return {"schema": SCHEMA, **asdict(self), "fingerprint": dict(self.fingerprint)}

    @classmethod
    def from_plain(cls, plain: object) -> Calibration:
        """Build from what `to_plain` returned; anything else is a MeasurementError."""
        wanted = {"schema", *(field.name for field in fields(cls))}
        if not isinstance(plain, dict) or plain.get("schema") != SCHEMA or {"is_quick", *plain} != wanted:
            raise MeasurementError(f"calibration: not of schema {SCHEMA}; run 'perfsuite calibrate' again")
        try:
            return cls(
                n_threads=int(plain["n_threads"]),
                engine=str(plain["engine"]),
                recorded_at=str(plain["recorded_at"]),
                fingerprint=dict(plain["fingerprint"]),
                points=tuple(_point(each) for each in plain["points"]),
                compositions=tuple(_composition(each) for each in plain["compositions"]),
                token_phases=tuple(_token_phase(each) for each in plain["token_phases"]),
                is_quick=bool(plain.get("is_quick", False)),  # which files of before do not say
            )
        except (TypeError, ValueError, KeyError) as error:
            raise MeasurementError(f"calibration: {error}; run 'perfsuite calibrate' again") from error


def _point(plain: Mapping[str, Any]) -> CalibrationPoint:
    return CalibrationPoint(shape=OperatorShape(**plain["shape"]), rounds_ns=_times(plain["rounds_ns"]))


def _composition(plain: Mapping[str, Any]) -> Composition:
    shapes = tuple(OperatorShape(**shape) for shape in plain["shapes"])
    counts = tuple(int(count) for count in plain["counts"])
    if not shapes or len(shapes) != len(counts) or min(counts) < 1:
        raise ValueError(f"counts are {counts!r}, expected one of 1 or more for each of {len(shapes)} shapes")
    shapes_ns, rest_ns = tuple(map(_times, plain["shapes_ns"])), _times(plain["rest_ns"], may_be_0=True)
    if len(shapes_ns) != len(shapes) or {len(rounds_ns) for rounds_ns in shapes_ns} != {len(rest_ns)}:
        raise ValueError(f"shapes_ns are not {len(rest_ns)} times for each of {len(shapes)} shapes")
    return Composition(
        name=str(plain["name"]),
        phase=str(plain["phase"]),
        shapes=shapes,
        counts=counts,
        shapes_ns=shapes_ns,
        rest_ns=rest_ns,
    )


def _token_phase(plain: Mapping[str, Any]) -> TokenPhase:
    n_vocab = int(plain["n_vocab"])
    if n_vocab < 1:
        raise ValueError(f"n_vocab is {n_vocab}, expected 1 or more")
    return TokenPhase(
        name=str(plain["name"]), phase=str(plain["phase"]), n_vocab=n_vocab, rounds_ns=_times(plain["rounds_ns"])
    )


def _times(values: object, *, may_be_0: bool = False) -> tuple[float, ...]:
    if not isinstance(values, (list, tuple)) or not values:
        raise ValueError(f"times are {values!r}, expected a list of numbers")
    times = tuple(float(value) for value in values)
    if not all(math.isfinite(time) and (time > 0.0 or (may_be_0 and time == 0.0)) for time in times):
        raise ValueError(f"times are {values!r}, expected {'0 or more' if may_be_0 else 'more than 0'}")
    return times
