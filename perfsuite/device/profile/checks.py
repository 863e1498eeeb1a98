"""What each key of a profile's file may hold, and the line that says so where it holds something else."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from perfsuite.device.profile.file import ProfileFile
from perfsuite.device.profile.record import PEAK_KINDS
from perfsuite.device.profile.values import (
    ADDRESS,
    DEVICE_FOLDER,
    FLAG,
    GOVERNOR,
    KIND,
    LINE,
    NAME,
    OPTIONAL_LINE,
    PATH,
    PORT,
    PROCESSORS,
    THERMAL_ZONES,
    Accepted,
    one_of,
    ratio,
    real,
    whole,
)
from perfsuite.device.reach import WAYS
from perfsuite.errors import DeviceError

_TOP = {
    "description": LINE,
    "extends": NAME,
    "kind": NAME,
    "opencl_platform": OPTIONAL_LINE,
    "default_model": OPTIONAL_LINE,
    "memory_bytes": whole(1 << 26, 1 << 50, "a whole number of bytes, such as 8_589_934_592 for 8 GiB"),
}

_MARGIN = ratio("between 0 and 1, such as 0.02")
_TOLERANCE = real(1.0, 1e6, "a number of times above 1, such as 8.0", is_open=True)

#: The tables of single values, and the tables in those.
_TABLES: Mapping[str, Mapping[str, Accepted]] = {
    "reach": {
        "way": one_of(WAYS),
        "address": ADDRESS,
        "port": PORT,
        "identity_file": PATH,
        "known_hosts_file": PATH,
        "home": DEVICE_FOLDER,
    },
    "conditions": {
        "processors": PROCESSORS,
        "governor": GOVERNOR,
        "gpu_governor": GOVERNOR,
        "start_below_celsius": real(0.0, 150.0, "degrees Celsius, such as 55.0, or inf for any", or_inf=True),
        "cooling_limit_s": real(0.0, 86400.0, "seconds, from 0 to 86400"),
        "thermal_zones": THERMAL_ZONES,
        "least_battery_ratio": real(0.0, 1.0, "a ratio from 0 to 1, such as 0.3"),
    },
    "judging": {
        "forecast_least_ns": whole(0, 10**12, "a whole number of nanoseconds, such as 100_000"),
        "session_spread_ratio": _MARGIN,
        "max_waiting_ratio": _MARGIN,
        "max_others_ratio": _MARGIN,
        "ceiling_spread_ratio": _MARGIN,
    },
}

#: Tables in ``[judging]`` by kind of case, or by sentinel.
_BY_KIND = {
    "margin_ratio": _MARGIN,
    "forecast_tolerance_ratio": _TOLERANCE,
    "calibrated_tolerance_ratio": _TOLERANCE,
    "quick_tolerance_ratio": _TOLERANCE,
}
_BY_SENTINEL = {name: real(0.0, 1.0, "a ratio from 0 to 1, such as 0.25") for name in ("memory", "compute")}

_PEAK = {
    "processor": LINE,
    "kind": one_of(PEAK_KINDS),
    "per_s": real(1e8, 1e18, "bytes or operations a second, such as 17.1e9 for 17.1 GB/s"),
    "source": LINE,
    "official": FLAG,
}
_OPTIONAL_IN_PEAK = {"official"}


def check_tables(plain: Mapping[str, Any], file: ProfileFile) -> None:
    """Refuse what no profile may hold; a file may leave out everything.

    Raises
    ------
    DeviceError
        It names the file, the key, its value, and what is accepted.
    """
    _check_keys(plain, (*_TOP, *_TABLES, "theoretical"), "a profile", file)
    for key, accepted in _TOP.items():
        _check_value(plain, key, accepted, "", file)
    for name, keys in _TABLES.items():
        _check_table(_table(plain, name, f"[{name}]", file), name, keys, file)
    _check_peaks(plain.get("theoretical", []), file)


def _check_table(table: Mapping[str, Any], name: str, keys: Mapping[str, Accepted], file: ProfileFile) -> None:
    inner = (*_BY_KIND, "sentinel_weight_ratio") if name == "judging" else ()
    _check_keys(table, (*keys, *inner), f"[{name}]", file)
    for key, accepted in keys.items():
        _check_value(table, key, accepted, f"[{name}] ", file)
    for key in inner:
        _check_ratios(_table(table, key, f"[{name}.{key}]", file), key, file)


def _check_ratios(table: Mapping[str, Any], key: str, file: ProfileFile) -> None:
    """Check a table by kind of case, which may be one of the user's own tests, or by sentinel."""
    where = f"[judging.{key}]"
    if key not in _BY_KIND:
        _check_keys(table, tuple(_BY_SENTINEL), where, file)
    for name in table:
        if key in _BY_KIND and not KIND.takes(name):
            raise DeviceError(f"{file.where}: {where} {name!r} is no kind of case; expected {KIND.told}")
        _check_value(table, name, _BY_KIND.get(key) or _BY_SENTINEL[name], f"{where} ", file)


def _check_peaks(peaks: object, file: ProfileFile) -> None:
    if not isinstance(peaks, list) or not all(isinstance(each, Mapping) for each in peaks):
        raise DeviceError(
            f"{file.where}: theoretical = {_shown(peaks)}, expected tables that begin with [[theoretical]]"
        )
    seen: set[tuple[str, str]] = set()
    for place, peak in enumerate(peaks, start=1):
        where = f"[[theoretical]] number {place}"
        _check_keys(peak, tuple(_PEAK), where, file)
        for key, accepted in _PEAK.items():
            if key not in peak and key not in _OPTIONAL_IN_PEAK:
                raise DeviceError(f"{file.where}: {where}: {key} is missing; expected {accepted.told}")
            _check_value(peak, key, accepted, f"{where}: ", file)
        of = (peak["processor"], peak["kind"])
        if of in seen:
            raise DeviceError(f"{file.where}: {where}: {of[1]} of {of[0]!r} is there twice; leave one")
        seen.add(of)


def _table(plain: Mapping[str, Any], key: str, told: str, file: ProfileFile) -> Mapping[str, Any]:
    value = plain.get(key, {})
    if isinstance(value, Mapping):
        return value
    raise DeviceError(f"{file.where}: {key} = {_shown(value)}, expected a table that begins with {told}")


def _check_keys(plain: Mapping[str, Any], known: tuple[str, ...], told: str, file: ProfileFile) -> None:
    for key in plain:
        if key not in known:
            meant = "".join(f" (did you mean {each}?)" for each in get_close_matches(key, known, n=1))
            raise DeviceError(f"{file.where}: {told} has no key {key!r}{meant}; it takes {', '.join(known)}")


def _check_value(plain: Mapping[str, Any], key: str, accepted: Accepted, told: str, file: ProfileFile) -> None:
    if key in plain and not accepted.takes(plain[key]):
        raise DeviceError(f"{file.where}: {told}{key} = {_shown(plain[key])}, expected {accepted.told}")


def _shown(value: object) -> str:
    """Return a value as TOML has it, in one line and not too long."""
    told = str(value).lower() if isinstance(value, bool) else repr(value)
    return told if len(told) <= 60 else f"{told[:59]}…"
