"""Files of published devices: their schema, checked on reading. It is described in ``baselines/README.md``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypedDict

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import Name, Positive, Size, read_json
from perfsuite.records.events import Phase

#: The schema that is read.
SCHEMA = 1

_TODO = "see baselines/README.md"

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


class _Paper(TypedDict):
    name: Name
    title: Name
    arxiv: Name | None
    tables: list[str]


class _Device(TypedDict("_Class", {"class": Name})):
    name: Name
    theoretical_bandwidth_bytes_per_s: Positive | None
    measured_bandwidth_bytes_per_s: Positive | None
    bandwidth_correction_ratio: Positive | None
    theoretical_fp32_flops_per_s: Positive | None
    measured_fp32_flops_per_s: Positive | None
    theoretical_fp16_flops_per_s: Positive | None
    measured_fp16_flops_per_s: Positive | None
    theoretical_ops_per_s: Positive | None
    sources: dict[str, Name]
    note: str


class _Rate(TypedDict):
    device: Name | None
    architecture: Name
    quantization: Name
    scenario: str
    phase: Phase
    tokens_per_s: Positive | None
    latency_ns: Size | None
    n_tokens: Size | None
    table: Name
    is_suspect: bool
    note: str


class _File(TypedDict):
    paper: _Paper
    notes: list[str]
    devices: list[_Device]
    rates: list[_Rate]


def read_published(path: Path) -> PlainFile:
    """Read a file, or raise PerfsuiteError that names the file, the field, its value and what is accepted."""
    read: Mapping[str, Any] = read_json(path, _File, PerfsuiteError, _TODO, schema=SCHEMA, is_closed=True)
    devices, rates = read["devices"], read["rates"]
    for at, device in enumerate(devices):
        known = [name for name in CEILING_FIELDS if device[name] is not None]
        if list(device["sources"]) != known:
            wanted = f"a source for each of {', '.join(known) or 'no field'}"
            _reject(f"{path}: devices[{at}]", "sources", list(device["sources"]), wanted)
    names = {device["name"] for device in devices}
    if len(names) < len(devices):
        _reject(f"{path}", "devices", [device["name"] for device in devices], "names that differ")
    for at, rate in enumerate(rates):
        where = f"{path}: rates[{at}]"
        if rate["device"] is not None and rate["device"] not in names:
            _reject(where, "device", rate["device"], f"one of {', '.join(sorted(names))}")
        if (rate["tokens_per_s"] is None) is (rate["latency_ns"] is None):
            _reject(where, "tokens_per_s", rate["tokens_per_s"], "either it or latency_ns")
    return PlainFile(paper=read["paper"]["name"], devices=tuple(devices), rates=tuple(rates))


def _reject(where: str, field: str, value: object, accepted: str) -> NoReturn:
    raise PerfsuiteError(f"{where}.{field} is {value!r}, expected {accepted}; {_TODO}")
