"""Files of published devices: their schema, checked on reading. It is described in ``baselines/README.md``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from perfsuite.errors import PerfsuiteError
from perfsuite.records.events import Phase

#: The schema that is read.
SCHEMA = 1

#: Fields of a device that are ceilings, or a factor on one; each that is known has a source.
CEILING_FIELDS = (
    "theoretical_bandwidth_bytes_per_s",
    "measured_bandwidth_bytes_per_s",
    "bandwidth_correction_ratio",
    "theoretical_fp32_flops_per_s",
    "measured_fp32_flops_per_s",
    "theoretical_fp16_flops_per_s",
    "measured_fp16_flops_per_s",
    "theoretical_ops_per_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFile:
    """What one paper published, checked and still plain."""

    #: Short name of the paper.
    paper: str
    devices: tuple[Mapping[str, Any], ...]
    rates: tuple[Mapping[str, Any], ...]


def read_published(path: Path) -> PlainFile:
    """Read a file, or raise PerfsuiteError that names the file, the field, its value and what is accepted."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise PerfsuiteError(f"{path}: is no JSON ({error})") from error
    _check(f"{path}", plain, _FILE)
    if plain["schema"] != SCHEMA:
        _reject(f"{path}", "schema", plain["schema"], str(SCHEMA))
    _check(f"{path}: paper", plain["paper"], _PAPER)
    for at, device in enumerate(plain["devices"]):
        _check_device(f"{path}: device {at}", device)
    names = {device["name"] for device in plain["devices"]}
    if len(names) < len(plain["devices"]):
        _reject(f"{path}", "devices", [device["name"] for device in plain["devices"]], "names that differ")
    for at, rate in enumerate(plain["rates"]):
        _check_rate(f"{path}: rate {at}", rate, names)
    return PlainFile(paper=plain["paper"]["name"], devices=tuple(plain["devices"]), rates=tuple(plain["rates"]))


_Rule = tuple[Callable[[object], bool], str]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_phase(value: object) -> bool:
    return value in [phase.value for phase in Phase]


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _or_null(rule: _Rule) -> _Rule:
    accepts, words = rule
    return (lambda value: value is None or accepts(value)), f"{words} or null"


_TEXT: _Rule = (_is_text, "a text")
_NAME: _Rule = (_is_name, "a text that is not empty")
_POSITIVE: _Rule = (_is_positive, "a number above 0")
_COUNT: _Rule = (_is_count, "an integer above 0")
_TEXTS: _Rule = (_is_list_of_texts, "a list of texts")

_OBJECT: _Rule = ((lambda value: isinstance(value, dict)), "an object")
_FILE: Mapping[str, _Rule] = {
    "schema": _COUNT,
    "paper": _OBJECT,
    "notes": _TEXTS,
    "devices": (_is_list, "a list"),
    "rates": (_is_list, "a list"),
}
_PAPER: Mapping[str, _Rule] = {"name": _NAME, "title": _NAME, "arxiv": _or_null(_NAME), "tables": _TEXTS}
_DEVICE: Mapping[str, _Rule] = {
    "name": _NAME,
    "class": _NAME,
    **dict.fromkeys(CEILING_FIELDS, _or_null(_POSITIVE)),
    "sources": _OBJECT,
    "note": _TEXT,
}
_RATE: Mapping[str, _Rule] = {
    "device": _or_null(_NAME),
    "architecture": _NAME,
    "quantization": _NAME,
    "scenario": _TEXT,
    "phase": (_is_phase, f"one of {', '.join(phase.value for phase in Phase)}"),
    "tokens_per_s": _or_null(_POSITIVE),
    "latency_ns": _or_null(_COUNT),
    "n_tokens": _or_null(_COUNT),
    "table": _NAME,
    "is_suspect": ((lambda value: isinstance(value, bool)), "true or false"),
    "note": _TEXT,
}


def _check_device(where: str, device: object) -> None:
    values = _check(where, device, _DEVICE)
    known = [name for name in CEILING_FIELDS if values[name] is not None]
    if list(values["sources"]) != known or not all(map(_is_name, values["sources"].values())):
        _reject(where, "sources", values["sources"], f"a source for each of {', '.join(known) or 'no field'}")


def _check_rate(where: str, rate: object, devices: set[str]) -> None:
    values = _check(where, rate, _RATE)
    if values["device"] is not None and values["device"] not in devices:
        _reject(where, "device", values["device"], f"one of {', '.join(sorted(devices))}")
    if (values["tokens_per_s"] is None) is (values["latency_ns"] is None):
        _reject(where, "tokens_per_s", values["tokens_per_s"], "either it or latency_ns")


def _check(where: str, plain: object, rules: Mapping[str, _Rule]) -> Mapping[str, Any]:
    if not isinstance(plain, dict) or set(plain) != set(rules):
        seen = sorted(plain) if isinstance(plain, dict) else type(plain).__name__
        raise PerfsuiteError(f"{where}: fields are {seen}, expected {sorted(rules)}")
    for name, (accepts, words) in rules.items():
        if not accepts(plain[name]):
            _reject(where, name, plain[name], words)
    return plain


def _reject(where: str, field: str, value: object, accepted: str) -> NoReturn:
    raise PerfsuiteError(f"{where}: {field} is {value!r}, expected {accepted}")
