"""The properties that hold at every shape, and the verdict on one of them at one shape."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from perfsuite.records.outcome import Outcome


class ShapeProperty(str, Enum):
    """What is true of each shape of a sound operation."""

    #: The output is NumPy's.
    CORRECT = "correct"
    #: A shape takes no longer than the padded shape: padding is all that its edges cost.
    PADDING = "padding"
    #: A shape takes no longer than the same shape grown by a whole tile in one dimension.
    GROWTH = "growth"
    #: Nothing is faster than the device's ceilings allow.
    CEILING = "ceiling"
    #: ggml's operators take what the device's calibration forecasts, within its interval.
    CALIBRATED = "calibrated"


#: What a wrong output and a crash are. Of the outcomes that fail it is the one next to INVALID: both say that the time
#: is that of no such operation, and neither that it is slow, which REGRESSED and SLOW would. A kernel case whose output
#: is wrong is INVALID, for it is there to be timed and was not; a hunt is there to find it, so it has to fail.
WRONG = Outcome.IMPOSSIBLE


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeVerdict:
    """What was found of one property at one shape; equal cases get the same verdict all session."""

    property: ShapeProperty
    case_id: str
    #: PASS; REGRESSED (padding, growth), SLOW (calibrated), IMPOSSIBLE (ceiling); `WRONG` where the output is wrong or
    #: the process crashed, whatever the property; INVALID where it was not measured, or bounds nothing.
    outcome: Outcome
    #: One line: what was measured against what, and how sure.
    reason: str
    #: What the property bounds: new over old, measured over forecast, floor over measured, error over tolerance.
    #: Above 1 is worse; a hunt steers towards the largest.
    ratio: float | None = None
    lower_ratio: float | None = None
    upper_ratio: float | None = None
    #: The case that it was held against: the padded or grown one.
    against_id: str | None = None
