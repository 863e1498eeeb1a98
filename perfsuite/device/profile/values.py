"""What each key of a profile's file may hold, said once, by types: `perfsuite.records.codec` checks files by them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypedDict

import msgspec
from msgspec import Meta

from perfsuite.device.profile.record import NAME_PATTERN, NAME_RULE, Line, OptionalLine, TheoreticalPeak
from perfsuite.device.reach import Way

PORT_RULE, ADDRESS_CHARACTERS = "a whole number from 1 to 65535", "letters, digits and . _ - @ : % [ ] +"
_ADDRESS_RULE = (
    f"a host, user@host or a name of ~/.ssh/config, or adb's serial number: {ADDRESS_CHARACTERS}; "
    "or a serial port such as /dev/ttyUSB0"
)
BAUD_RULE = "a rate of serial ports, such as 115200"
#: No part of it is what a shell, or a configuration of OpenSSH, could take for more than a name.
_ADDRESS_PATTERN = (
    r"\A(?:(?!.*@(?:[-@]|\Z)|.*:.*@)[A-Za-z0-9_:\[][A-Za-z0-9._%@:\[\]+-]{0,999}"
    r"|(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,99}@)?/[A-Za-z0-9._/:+-]{1,899})?\Z"
)
_FOLDER_PATTERN = r"\A(?:/|~/)[^\x00-\x1f\x7f-\x9f]{0,999}\Z"

Port: TypeAlias = Annotated[int, Meta(ge=1, le=65535, description=PORT_RULE)]
Baud: TypeAlias = Annotated[int, Meta(ge=1200, le=4_000_000, description=BAUD_RULE)]
Address: TypeAlias = Annotated[str, Meta(pattern=_ADDRESS_PATTERN, description=_ADDRESS_RULE)]
_Name: TypeAlias = Annotated[str, Meta(pattern=NAME_PATTERN, description=f"a name ({NAME_RULE})")]
_Governor: TypeAlias = Annotated[
    str, Meta(pattern=r"\A[A-Za-z0-9_-]{0,999}\Z", description="a governor such as 'performance', or '' for none")
]
_DeviceFolder: TypeAlias = Annotated[
    str, Meta(pattern=_FOLDER_PATTERN, description="a folder on the device that begins with / or ~/")
]
_Memory: TypeAlias = Annotated[
    int, Meta(ge=1 << 26, le=1 << 50, description="a whole number of bytes, such as 8_589_934_592 for 8 GiB")
]
_Processors: TypeAlias = Annotated[
    list[Annotated[int, Meta(ge=0, lt=4096, description="a processor's number")]],
    Meta(description="a list of different processor numbers, such as [4, 5, 6, 7]"),
]
_Zones: TypeAlias = Annotated[list[Line], Meta(description="a list of types of thermal zones, such as ['cpu-thermal']")]
_Celsius: TypeAlias = Annotated[float, Meta(ge=0, description="degrees Celsius, such as 55.0, or inf for any")]
_Wait: TypeAlias = Annotated[float, Meta(ge=0, le=86400, description="seconds, from 0 to 86400")]
_Share: TypeAlias = Annotated[float, Meta(ge=0, le=1, description="a ratio from 0 to 1, such as 0.3")]
_Margin: TypeAlias = Annotated[float, Meta(gt=0, lt=1, description="a ratio between 0 and 1, such as 0.02")]
_Times: TypeAlias = Annotated[float, Meta(gt=1, le=1e6, description="a number of times above 1, such as 8.0")]
_LeastNs: TypeAlias = Annotated[
    int, Meta(ge=0, le=10**12, description="a whole number of nanoseconds, such as 100_000")
]


class _Reach(TypedDict, total=False):
    way: Way
    address: Address
    port: Port
    baud: Baud
    identity_file: OptionalLine
    known_hosts_file: OptionalLine
    home: _DeviceFolder


class _Conditions(TypedDict, total=False):
    processors: _Processors
    governor: _Governor
    gpu_governor: _Governor
    start_below_celsius: _Celsius
    cooling_limit_s: _Wait
    thermal_zones: _Zones
    least_battery_ratio: _Share


class _Sentinels(TypedDict, total=False):
    memory: _Share
    compute: _Share


class _Judging(TypedDict, total=False):
    forecast_least_ns: _LeastNs
    session_spread_ratio: _Margin
    max_waiting_ratio: _Margin
    max_others_ratio: _Margin
    ceiling_spread_ratio: _Margin
    margin_ratio: dict[str, _Margin]
    forecast_tolerance_ratio: dict[str, _Times]
    calibrated_tolerance_ratio: dict[str, _Times]
    quick_tolerance_ratio: dict[str, _Times]
    sentinel_weight_ratio: _Sentinels


class Tables(TypedDict, total=False):
    """A profile's file, which may leave out everything; its keys are those of the records that they become."""

    description: Line
    extends: _Name
    kind: _Name
    opencl_platform: OptionalLine
    default_model: OptionalLine
    default_scenario: OptionalLine
    counts_for: OptionalLine
    memory_bytes: _Memory
    reach: _Reach
    conditions: _Conditions
    judging: _Judging
    theoretical: list[TheoreticalPeak]


#: The tables of ``[judging]`` by kind of case, which may be one of the user's own tests, or by sentinel.
BY_KIND = (
    *("margin_ratio", "sentinel_weight_ratio", "forecast_tolerance_ratio", "calibrated_tolerance_ratio"),
    "quick_tolerance_ratio",
)


def takes(kind: Any, value: object) -> bool:
    """Whether a value may stand where one of this kind is."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
