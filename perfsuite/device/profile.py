"""Device profiles: what a device is called, and how strictly it is judged."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from perfsuite.errors import DeviceError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


#: What a theoretical peak may be of.
PEAK_KINDS = ("bandwidth", "fp32", "f16", "int8")

#: The change that passes where nothing else was said.
DEFAULT_MARGIN_RATIO = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoreticalPeak:
    """What a data sheet promises of a device; for reading beside what was measured, nothing is judged by it."""

    #: ``cpu``, or a part of an OpenCL device's name.
    processor: str
    #: ``bandwidth`` of memory, or a type of number: ``fp32``, ``f16``, ``int8``.
    kind: str
    per_s: float
    #: Where it says so.
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One device as its TOML file describes it."""

    name: str
    description: str
    #: OpenCL platform to use, by a part of its name; None takes the best that is there.
    opencl_platform: str | None
    #: By kind of case: how many times the forecast a case may take before it is SLOW. A kind that is left out is not
    #: judged by the forecast.
    forecast_tolerance_ratio: Mapping[str, float]
    #: The same over the upper bound of a calibrated forecast.
    calibrated_tolerance_ratio: Mapping[str, float]
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
    theoretical_peaks: tuple[TheoreticalPeak, ...] = ()


def profile_names() -> tuple[str, ...]:
    """List the profiles that ship with the suite."""
    folder = files("perfsuite.device") / "profiles"
    return tuple(sorted(entry.name[: -len(".toml")] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def find_profile(name: str) -> Profile:
    """Read the profile of a device; an unknown name is a `DeviceError` that lists the known ones."""
    known = profile_names()
    if name not in known:
        raise DeviceError(f"--device={name}: no such device; known are {', '.join(known)}")
    text = (files("perfsuite.device") / "profiles" / f"{name}.toml").read_text("utf-8")
    return _profile(name, tomllib.loads(text))


def _profile(name: str, plain: Mapping[str, Any]) -> Profile:
    try:
        judging = plain["judging"]
        return Profile(
            name=name,
            description=plain["description"],
            opencl_platform=plain.get("opencl_platform"),
            forecast_tolerance_ratio=dict(judging["forecast_tolerance_ratio"]),
            calibrated_tolerance_ratio=dict(judging.get("calibrated_tolerance_ratio", {})),
            margin_ratio=dict(judging.get("margin_ratio", {})),
            sentinel_weight_ratio=dict(judging.get("sentinel_weight_ratio", {})),
            forecast_least_ns=int(judging["forecast_least_ns"]),
            session_spread_ratio=float(judging["session_spread_ratio"]),
            max_waiting_ratio=float(judging["max_waiting_ratio"]),
            max_others_ratio=float(judging["max_others_ratio"]),
            ceiling_spread_ratio=float(judging["ceiling_spread_ratio"]),
            theoretical_peaks=tuple(_peak(name, each) for each in plain.get("theoretical", ())),
        )
    except KeyError as error:
        raise DeviceError(f"profile {name}.toml: {error.args[0]} is missing") from error


def _peak(name: str, plain: Mapping[str, Any]) -> TheoreticalPeak:
    peak = TheoreticalPeak(
        processor=plain["processor"], kind=plain["kind"], per_s=float(plain["per_s"]), source=plain["source"]
    )
    if peak.kind not in PEAK_KINDS:
        raise DeviceError(f"profile {name}.toml: kind is {peak.kind!r}, accepted are {', '.join(PEAK_KINDS)}")
    if not peak.per_s > 0 or not peak.source:
        raise DeviceError(f"profile {name}.toml: a theoretical {peak.kind} needs a rate above 0 and a source")
    return peak
