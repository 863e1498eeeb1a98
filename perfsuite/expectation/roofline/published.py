"""What papers published of devices: their ceilings, and the rates and latencies measured on them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypedDict

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.point import Roof
from perfsuite.records.codec import Name, Positive, Size, read_json
from perfsuite.records.events import Phase
from perfsuite.units import NS_PER_S

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


def read_published(path: Path) -> Mapping[str, Any]:
    """Read a file as plain values; a PerfsuiteError names the file, the field, its value and what is accepted."""
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
    return read


def _reject(where: str, field: str, value: object, accepted: str) -> NoReturn:
    raise PerfsuiteError(f"{where}.{field} is {value!r}, expected {accepted}; {_TODO}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDevice:
    """A device as a paper describes it; what it does not say is None."""

    name: str
    #: What kind of device it is, in the paper's words.
    device_class: str
    #: Name of the paper that ran it.
    paper: str
    theoretical_bandwidth_bytes_per_s: float | None
    measured_bandwidth_bytes_per_s: float | None
    #: By how much the measured bandwidth is to be multiplied; None where the paper counts right or says nothing.
    bandwidth_correction_ratio: float | None
    theoretical_fp32_flops_per_s: float | None
    measured_fp32_flops_per_s: float | None
    theoretical_fp16_flops_per_s: float | None
    measured_fp16_flops_per_s: float | None
    #: A peak of operations whose type of number is not known.
    theoretical_ops_per_s: float | None
    #: Field and where its value comes from, for each that is not None.
    sources: tuple[tuple[str, str], ...]
    note: str

    @property
    def roof(self) -> Roof | None:
        """Theoretical FP32 over theoretical bandwidth, as RooflineBench prints its ridge points."""
        return _roof(self.theoretical_fp32_flops_per_s, self.theoretical_bandwidth_bytes_per_s)

    @property
    def measured_roof(self) -> Roof | None:
        """Measured FP32 over measured bandwidth, as printed: neither corrected nor checked against any rate."""
        return _roof(self.measured_fp32_flops_per_s, self.measured_bandwidth_bytes_per_s)

    @property
    def corrected_bandwidth_bytes_per_s(self) -> float | None:
        """The measured bandwidth with all arrays counted; None where nothing is known to correct.

        RooflineBench adds two large arrays into a third: three arrays pass, and its test counts two. So
        measured x 3 / 2.

        *Source*: the bandwidth test in the first release of RooflineBench's code.
        """
        if self.measured_bandwidth_bytes_per_s is None or self.bandwidth_correction_ratio is None:
            return None
        return self.measured_bandwidth_bytes_per_s * self.bandwidth_correction_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRate:
    """How fast a phase was; either a rate or a latency is printed."""

    #: Name of the paper that printed it.
    paper: str
    #: Name of a `PublishedDevice`; None where the table does not say.
    device: str | None
    #: Name in the catalogue, or, where that has none, the paper's.
    architecture: str
    #: llama.cpp's name, or the paper's where its engine has types of its own.
    quantization: str
    #: ``siso`` and its like, or ``p<prompt>``; empty where the lengths are not known.
    scenario: str
    phase: Phase
    tokens_per_s: float | None
    latency_ns: int | None
    #: Tokens that the latency is for, where it is known.
    n_tokens: int | None
    #: Number or name of the table.
    table: str
    #: Whether the table contradicts itself here.
    is_suspect: bool
    note: str

    @property
    def rate_tokens_per_s(self) -> float | None:
        """The rate, or that of the latency; None where its tokens are not known."""
        if self.tokens_per_s is not None:
            return self.tokens_per_s
        if self.latency_ns is None or self.n_tokens is None:
            return None
        return self.n_tokens * NS_PER_S / self.latency_ns


def published_devices() -> tuple[PublishedDevice, ...]:
    """Return the devices of all papers, in the order of the files and within them."""
    return tuple(
        PublishedDevice(
            paper=read["paper"]["name"],
            device_class=plain["class"],
            sources=tuple(plain["sources"].items()),
            **{name: value for name, value in plain.items() if name not in ("class", "sources")},
        )
        for read in _files()
        for plain in read["devices"]
    )


def published_rates() -> tuple[PublishedRate, ...]:
    """Return the rates and latencies of all papers, in the order of the files and within them."""
    return tuple(
        PublishedRate(paper=read["paper"]["name"], **{**plain, "phase": Phase(plain["phase"])})
        for read in _files()
        for plain in read["rates"]
    )


def published_dir(packages: Iterable[Path] | None = None) -> Path:
    """Return the folder of the files: a checkout's ``baselines/published`` first, then the installed ``_published``.

    `packages` are the folders in which the package lies, and found by its import where they are not given. Raises
    PerfsuiteError where none has the files.
    """
    roots = tuple(_packages() if packages is None else packages)
    places = [*(root.parent / "baselines" / "published" for root in roots), *(root / "_published" for root in roots)]
    for place in places:
        if any(place.glob("*.json")):
            return place
    raise PerfsuiteError(
        f"published devices: not found in {', '.join(map(str, places))}; reinstall the package, or use a checkout"
    )


@cache
def _files() -> tuple[Mapping[str, Any], ...]:
    return tuple(read_published(path) for path in sorted(published_dir().glob("*.json")))


def _packages() -> tuple[Path, ...]:
    """An editable install has a copy that does not follow edits beside the checkout itself."""
    spec = importlib.util.find_spec("perfsuite")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    roots.append(Path(__file__).resolve().parents[2])
    return tuple(dict.fromkeys(roots))


def _roof(peak_flops_per_s: float | None, bandwidth_bytes_per_s: float | None) -> Roof | None:
    if peak_flops_per_s is None or bandwidth_bytes_per_s is None:
        return None
    return Roof(peak_flops_per_s=peak_flops_per_s, bandwidth_bytes_per_s=bandwidth_bytes_per_s)
