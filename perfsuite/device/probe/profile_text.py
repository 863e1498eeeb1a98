"""The file of a profile, written from what a live device said; each value has a comment with its source."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from perfsuite.device.probe.processors import (
    Cluster,
    big_processors,
    board_name,
    clusters,
    memory_bytes,
    shipped_kind,
    sold_bytes,
    system_name,
)
from perfsuite.device.probe.readings import Readings
from perfsuite.device.probe.sensors import GpuClock, battery, gpu_clocks, power_sensors, zones
from perfsuite.device.reach import Reach

#: The governor that holds a clock at its highest.
_STEADY = "performance"

#: A run begins this far below where the kernel slows down, and above what a device at rest has; never nearer to it than
#: the last. The suite's own choice.
_BELOW_LIMIT_CELSIUS, _ABOVE_REST_CELSIUS, _LEAST_ROOM_CELSIUS = 35.0, 5.0, 15.0

#: Charge below which phones save power.
_LEAST_BATTERY_RATIO = 0.3

#: A model whose weights are 0.8 GB, and one of 0.15 GB for devices with less memory than this.
_USUAL_MODEL, _SMALL_MODEL, _LEAST_USUAL_BYTES = "llama-3.2-1b-q4_0", "smollm2-135m-q8_0", 1_900_000_000


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A value of a profile."""

    #: Table and key: ``("conditions", "governor")``; ``""`` is the top.
    table: str
    key: str
    value: str | int | float | Sequence[int] | Sequence[str]
    #: From where it was read, or why it is so.
    reason: str


def suggest(readings: Readings) -> tuple[Suggestion, ...]:
    """Return all that a device's readings suggest, in the order of a profile's file."""
    about = (_about_device, _about_processors, _about_gpu, _about_heat, _about_battery)
    return tuple(suggestion for each in about for suggestion in each(readings))


def _about_device(readings: Readings) -> Iterator[Suggestion]:
    board = board_name(readings)
    if board is not None:
        text = "".join(each if each.isprintable() else "?" for each in board.value)[:200]
        yield Suggestion("", "description", text, board.source)
    kind = shipped_kind(readings)
    if kind is not None:
        yield Suggestion("", "extends", kind.value, f"it calls itself {kind.source!r}")
    n_bytes = memory_bytes(readings)
    if n_bytes is not None:
        reason = f"MemTotal of /proc/meminfo is {n_bytes:_}"
        yield Suggestion("", "memory_bytes", sold_bytes(n_bytes), reason)
        model = _USUAL_MODEL if n_bytes >= _LEAST_USUAL_BYTES else _SMALL_MODEL
        yield Suggestion("", "default_model", model, "its weights fit beside all else")
    platforms = [line.partition(": ")[2].strip() for line in readings.all("opencl") if line.startswith("Platform #")]
    if len(platforms) == 1:
        yield Suggestion("", "opencl_platform", platforms[0], "clinfo -l")


def _about_processors(readings: Readings) -> Iterator[Suggestion]:
    found = clusters(readings)
    big = big_processors(found)
    if big:
        told = "; ".join(_cluster_text(each) for each in found)
        yield Suggestion("conditions", "processors", big, f"the fast ones of {told}")
    if found and all(_STEADY in each.governors for each in found):
        reason = f"{found[0].path}/scaling_available_governors; now {found[0].governor}, {_may_set(*found)}"
        yield Suggestion("conditions", "governor", _STEADY, reason)


def _cluster_text(each: Cluster) -> str:
    first, last = each.processors[0], each.processors[-1]
    which = f"{first}" if first == last else f"{first} to {last}"
    clock = f" at {each.most_khz / 1e6:.2f} GHz" if each.most_khz is not None else ""
    capacity = f" (capacity {each.capacity})" if each.capacity is not None else ""
    return f"{which}{clock}{capacity}"


def _may_set(*found: Cluster | GpuClock) -> str:
    return "which may be set" if all(each.is_settable for each in found) else "which this user may not set"


def _about_gpu(readings: Readings) -> Iterator[Suggestion]:
    for each in gpu_clocks(readings)[:1]:
        if _STEADY in each.governors:
            reason = f"{each.path}/available_governors; now {each.governor}, {_may_set(each)}"
            yield Suggestion("conditions", "gpu_governor", _STEADY, reason)


def _about_heat(readings: Readings) -> Iterator[Suggestion]:
    found = zones(readings)
    near = [each for each in found if each.is_computing and each.celsius is not None]
    limits = [each.slows_at_celsius for each in near if each.slows_at_celsius is not None]
    if limits:
        slows, hottest = min(limits), max(each.celsius for each in near if each.celsius is not None)
        wanted = max(slows - _BELOW_LIMIT_CELSIUS, hottest + _ABOVE_REST_CELSIUS)
        gate = float(round(min(wanted, slows - _LEAST_ROOM_CELSIUS)))
        reason = f"the kernel slows down at {slows:.0f}, and it was {hottest:.0f} degrees when it was asked"
        yield Suggestion("conditions", "start_below_celsius", gate, reason)
    if near and len(near) < len(found):
        types = tuple(dict.fromkeys(each.type for each in near))
        reason = "/sys/class/thermal/thermal_zone*/type, those with a trip, or of processors and GPU by name"
        yield Suggestion("conditions", "thermal_zones", types, reason)


def _about_battery(readings: Readings) -> Iterator[Suggestion]:
    found = battery(readings)
    if found is not None and found.charge_ratio is not None:
        reason = f"{found.source}: {found.charge_ratio:.0%} now; phones save power when it is low"
        yield Suggestion("conditions", "least_battery_ratio", _LEAST_BATTERY_RATIO, reason)


#: What a profile extends where no shipped one is of its kind, by the way to it.
_GENERIC = {"ssh": "generic-ssh", "adb": "generic-adb", "serial": "generic-serial", "local": "host"}

_WIDTH = 118


def profile_text(readings: Readings, reach: Reach, *, day: str) -> str:
    """Return the TOML of a profile; `day` is when the device was asked."""
    found = suggest(readings)
    lines = [
        *_comment(
            f"Written by 'perfsuite devices probe' on {day}, from what the device said over {reach.text}. Each value "
            "is the device's own or follows from it, as its comment says; change what you know better."
        ),
        *_comment(system_name(readings)),
        *_values([each for each in found if not each.table]),
    ]
    if not any(each.key == "extends" for each in found):
        lines += _comment("No profile that ships with the suite is one of its kind.")
        lines += [f"extends = {toml_value(_GENERIC[reach.way])}"]
    lines += ["", "[reach]", *_reach_lines(reach)]
    conditions = [each for each in found if each.table == "conditions"]
    if conditions:
        lines += ["", "[conditions]", *_values(conditions)]
    sensors = power_sensors(readings)
    told = f"Power can be read in {', '.join(sensors)}." if sensors else "No power sensor can be read."
    return "\n".join([*lines, "", *_comment(told), ""])


def _values(found: Sequence[Suggestion]) -> Iterator[str]:
    for each in found:
        yield from _comment(each.reason)
        yield f"{each.key} = {toml_value(each.value)}"


def _reach_lines(reach: Reach) -> Iterator[str]:
    usual = asdict(Reach(way=""))
    said = {key: value for key, value in asdict(reach).items() if value != usual[key]}
    yield from (f"{key} = {toml_value(value)}" for key, value in said.items())


def _comment(text: str) -> list[str]:
    """Fold a text into comments; a control character would end one."""
    told = "".join(each if each.isprintable() else "?" for each in text)
    return [f"# {line}" for line in textwrap.wrap(told, _WIDTH, break_long_words=False, break_on_hyphens=False)]


def toml_value(value: str | int | float | Sequence[int] | Sequence[str]) -> str:
    """Return a value as TOML has it; JSON's escapes are among its own, except DEL."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return f"{value:_}" if value >= 1_000_000 else str(value)
    return repr(value) if isinstance(value, float) else f"[{', '.join(map(toml_value, value))}]"
