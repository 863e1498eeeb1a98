"""The record of a device's profile: how it is reached, how it must be, and how strictly it is judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta

from perfsuite.device.machine import NO_CONDITIONS, Conditions
from perfsuite.device.reach import Reach

#: What a theoretical peak may be of: ``bandwidth`` of memory, or a type of number.
_PeakKind: TypeAlias = Literal["bandwidth", "fp32", "f16", "int8"]
PEAK_KINDS: tuple[str, ...] = get_args(_PeakKind)

#: Nothing in it breaks a line, or is obeyed by a terminal.
_PRINTED = r"[^\x00-\x1f\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]{0,1000}\Z"
Line: TypeAlias = Annotated[str, Meta(pattern=rf"\A(?=.*\S){_PRINTED}", description="a line of text")]
OptionalLine: TypeAlias = Annotated[str, Meta(pattern=rf"\A{_PRINTED}", description="a line of text, or '' for none")]
_Rate: TypeAlias = Annotated[
    float, Meta(ge=1e8, le=1e18, description="bytes or operations a second, such as 17.1e9 for 17.1 GB/s")
]

#: A name is that of a file and of a host; it is no path.
NAME_PATTERN = r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"
NAME_RULE = "letters, digits, '.', '_' and '-', beginning with a letter or a digit, and no more than 64 of them"

_HERE = Reach()

#: The change that passes where nothing else was said.
DEFAULT_MARGIN_RATIO = 0.05


def is_name(name: str) -> bool:
    """Whether a device may be called so."""
    return re.match(NAME_PATTERN, name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoreticalPeak:
    """What a data sheet promises of a device; for reading beside what was measured, nothing is judged by it."""

    #: ``cpu``, or a part of an OpenCL device's name.
    processor: Line
    kind: _PeakKind
    per_s: _Rate
    #: Where it says so.
    source: Line
    #: Whether the device's maker says so, or it follows from what the maker says.
    official: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One device as its TOML files describe it."""

    name: str
    description: str
    #: OpenCL platform to use, by a part of its name; None takes the best that is there.
    opencl_platform: str | None
    #: By kind of case: how many times the forecast a case may take before it is SLOW. A kind that is left out is not
    #: judged by the forecast.
    forecast_tolerance_ratio: Mapping[str, float]
    #: The same over the upper bound of a calibrated forecast.
    calibrated_tolerance_ratio: Mapping[str, float]
    #: The same where the calibration was a quick one.
    quick_tolerance_ratio: Mapping[str, float]
    #: By kind of case: the change that passes where nobody said otherwise. A kind that is left out has the default.
    margin_ratio: Mapping[str, float]
    #: By sentinel: how far latencies follow its drift when they are compared with stored ones, 0 not at all, 1 in full.
    #: A sentinel that is left out is not followed.
    sentinel_weight_ratio: Mapping[str, float]
    #: Forecasts shorter than this bound nothing: what is left out of them (a wake-up, a cold cache) is longer.
    forecast_least_ns: int
    #: Spread between sessions that stands in until enough sessions are stored (a ratio of the latency).
    session_spread_ratio: float
    #: Share of thread time spent waiting for a processor beyond which a replicate is not used.
    max_waiting_ratio: float
    #: Share of the processors that other processes, or the hypervisor, may take before a replicate is not used.
    max_others_ratio: float
    #: Share by which a measurement may undercut the floor before it is IMPOSSIBLE: the spread of the ceilings.
    ceiling_spread_ratio: float
    #: Official ones only: these are set beside what was measured.
    theoretical_peaks: tuple[TheoreticalPeak, ...] = ()
    #: What others say, for reading in the profile alone: nothing is compared with them.
    unofficial_peaks: tuple[TheoreticalPeak, ...] = ()
    reach: Reach = _HERE
    conditions: Conditions = NO_CONDITIONS
    #: A name of the catalogue that fits its memory; None leaves it to the suite's default.
    default_model: str | None = None
    #: The scenario where nobody names one; None leaves it to the suite's default.
    default_scenario: str | None = None
    #: The processor whose work is counted, while no time is measured; None measures times.
    counts_for: str | None = None
    #: The least memory that it is sold with; None where nobody said.
    memory_bytes: int | None = None
    #: What pools and the tags of a farm call devices like it; "" is its name.
    kind: str = ""

    @property
    def is_local(self) -> bool:
        return self.reach.way == "local"
