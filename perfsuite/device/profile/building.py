"""A profile out of its layers, with what only the whole can tell."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfsuite.device.conditions import Conditions
from perfsuite.device.profile.layers import Layered
from perfsuite.device.profile.record import Profile, TheoreticalPeak
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError

#: By way: the keys of ``[reach]`` that mean something beside it.
_KEYS_OF = {
    "local": ("home",),
    "ssh": ("address", "port", "identity_file", "known_hosts_file", "home"),
    "adb": ("address", "home"),
}
_FILES = ("identity_file", "known_hosts_file")


def built(name: str, layers: Layered) -> Profile:
    """Return the profile.

    Raises
    ------
    DeviceError
        Nobody described it, or ``[reach]`` has a key that its way has not.
    """
    tables = layers.tables
    judging = tables["judging"]
    if "description" not in tables:
        raise DeviceError(f"{layers.files[0].where}: description is missing; expected a line of text")
    peaks = tuple(_peak(each) for each in tables.get("theoretical", ()))
    return Profile(
        name=name,
        description=tables["description"],
        opencl_platform=tables.get("opencl_platform") or None,
        forecast_tolerance_ratio=_ratios(judging["forecast_tolerance_ratio"]),
        calibrated_tolerance_ratio=_ratios(judging["calibrated_tolerance_ratio"]),
        quick_tolerance_ratio=_ratios(judging["quick_tolerance_ratio"]),
        margin_ratio=_ratios(judging["margin_ratio"]),
        sentinel_weight_ratio=_ratios(judging["sentinel_weight_ratio"]),
        forecast_least_ns=judging["forecast_least_ns"],
        session_spread_ratio=float(judging["session_spread_ratio"]),
        max_waiting_ratio=float(judging["max_waiting_ratio"]),
        max_others_ratio=float(judging["max_others_ratio"]),
        ceiling_spread_ratio=float(judging["ceiling_spread_ratio"]),
        theoretical_peaks=tuple(each for each in peaks if each.official),
        unofficial_peaks=tuple(each for each in peaks if not each.official),
        reach=_reach(name, layers),
        conditions=_conditions(tables.get("conditions", {})),
        default_model=tables.get("default_model") or None,
        memory_bytes=tables.get("memory_bytes"),
        kind=tables.get("kind", name),
    )


def _ratios(plain: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in plain.items()}


def _peak(plain: Mapping[str, Any]) -> TheoreticalPeak:
    return TheoreticalPeak(**{**plain, "per_s": float(plain["per_s"])})


#: An IPv6 address as it is written where a port may follow.
_IN_BRACKETS = re.compile(r"(?P<user>([^@\[\]]+@)?)\[(?P<host>[^\[\]]+)\]")


def _reach(name: str, layers: Layered) -> Reach:
    """Return the way; by ssh, a device without an address is reached by its name, and IPv6 has no brackets."""
    plain = {key: value for key, value in layers.tables.get("reach", {}).items() if value != ""}
    way = plain.pop("way", "local")
    for key in plain:
        if key not in _KEYS_OF[way]:
            told = f"{layers.where('reach', key)}: [reach] {key} = {plain[key]!r} with way = {way!r}"
            raise DeviceError(f"{told}, which takes {', '.join(_KEYS_OF[way])} alone")
    for key in _FILES:
        if key in plain:
            plain[key] = _path(plain[key], layers, key)
    if way == "ssh":
        plain["address"] = _without_brackets(plain.get("address", name), layers)
    return Reach(way=way, **plain)


def _without_brackets(address: str, layers: Layered) -> str:
    """Return an address as OpenSSH's client takes it: IPv6 without brackets, and a port by itself."""
    if match := _IN_BRACKETS.fullmatch(address):
        return f"{match['user']}{match['host']}"
    if "[" in address or "]" in address:
        where = layers.where("reach", "address")
        raise DeviceError(f"{where}: [reach] address = {address!r}: expected [user@][IPv6], and a port as port = N")
    return address


def _path(text: str, layers: Layered, key: str) -> str:
    """Return a path that holds in any folder: it is relative to its file's folder, and ``~`` is the home."""
    file = layers.origins["reach", key]
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise DeviceError(f"{file.where}: [reach] {key} = {text!r}: that home is unknown") from None
    return str(path if file.folder is None else file.folder.absolute() / path)


def _conditions(plain: Mapping[str, Any]) -> Conditions:
    said = {key: _condition(value) for key, value in plain.items() if value not in ("", math.inf)}
    return Conditions(**said)


def _condition(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return value if isinstance(value, str) else float(value)
