"""What papers published of devices, and the rates among it compared with each other and with the ceilings."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypedDict

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.graph import Batch, Settings, engine_graph, total_cost
from perfsuite.expectation.roofline.ceiling import Resource
from perfsuite.expectation.roofline.point import Roof
from perfsuite.records.codec import Name, Positive, Size, read_json
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import OpCost
from perfsuite.units import NS_PER_S
from perfsuite.workload.catalog import find
from perfsuite.workload.quantization import tensor_types

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


def published_roofs() -> tuple[tuple[str, Roof], ...]:
    """Return the devices whose roof is known, by name."""
    return tuple((device.name, roof) for device in published_devices() if (roof := device.roof) is not None)


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


#: Scenarios that differ in the length of the prompt alone: the shorter first.
PAIRS = (("siso", "liso"), ("silo", "lilo"))

#: From which ratio a slower decode after the shorter prompt is no noise.
LIMIT_RATIO = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectPair:
    """Two rates of which one must be a misprint; which one, the rule does not show."""

    shorter: PublishedRate
    longer: PublishedRate
    #: Rate after the longer prompt / rate after the shorter.
    ratio: float


def suspect_pairs(rates: Sequence[PublishedRate]) -> tuple[SuspectPair, ...]:
    """Return the decode rates that grow with the prompt by more than `LIMIT_RATIO`.

    A step after a longer prompt reads the same parameters and more keys and values, so it cannot be faster.
    """
    found: dict[tuple[str | None, ...], tuple[PublishedRate, float]] = {
        (rate.paper, rate.device, rate.architecture, rate.quantization, rate.scenario): (rate, rate.tokens_per_s)
        for rate in rates
        if rate.phase is Phase.DECODE and rate.tokens_per_s is not None
    }
    pairs = (
        (quick, found[(*where, long)])
        for short, long in PAIRS
        for (*where, scenario), quick in found.items()
        if scenario == short and (*where, long) in found
    )
    return tuple(
        SuspectPair(shorter=shorter, longer=longer, ratio=ratio)
        for (shorter, shorter_per_s), (longer, longer_per_s) in pairs
        if (ratio := longer_per_s / shorter_per_s) > LIMIT_RATIO
    )


#: Weights that are not stored as integers; those of mixtures and of other engines' types are.
_FLOATS = ("f32", "f16", "bf16")
#: What each phase needs; other phases are not held.
RESOURCES: Mapping[Phase, Resource] = {Phase.DECODE: Resource.BANDWIDTH, Phase.PREFILL: Resource.COMPUTE}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRate:
    """A rate with what it needs; either that is known, or `missing` says why it is not."""

    rate: PublishedRate
    resource: Resource
    #: Bytes or FLOPs a second, at least.
    needed_per_s: float | None
    missing: str
    #: What the device's paper gives, by name, those that are not known left out: ``measured``, ``corrected`` or
    #: ``theoretical`` of a bandwidth; ``measured_fp16`` and so on of arithmetic.
    ceilings: Mapping[str, float]

    def excess_ratio(self, ceiling: str) -> float | None:
        """Return need / ceiling, above 1 where the rate needs more; None where either is not known."""
        per_s = self.ceilings.get(ceiling)
        return None if self.needed_per_s is None or per_s is None else self.needed_per_s / per_s

    @property
    def measured_excess_ratio(self) -> float | None:
        """Need / the highest ceiling that is printed as measured, not corrected; None where either is not known."""
        ratios = [self.excess_ratio(name) for name in self.ceilings if name.startswith("measured")]
        return min((ratio for ratio in ratios if ratio is not None), default=None)

    @property
    def is_contradicted(self) -> bool | None:
        """Whether the rate needs more than any ceiling that is printed as measured; None where that is not known.

        Quantised weights may be multiplied as integers, whose ceiling no paper prints: a prefill of theirs beyond the
        ceilings of floats shows nothing.
        """
        excess_ratio = self.measured_excess_ratio
        if excess_ratio is None:
            return None
        if excess_ratio > 1.0 and self.resource is Resource.COMPUTE and self.rate.quantization not in _FLOATS:
            return None
        return excess_ratio > 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """What the rates of one device say of one of its measured ceilings."""

    device: str
    resource: Resource
    #: The rate that needs most.
    worst: HeldRate
    n_contradicted: int
    #: Rates that could be held against a measured ceiling.
    n_held: int

    @property
    def excess_ratio(self) -> float:
        """By how much the worst exceeds the ceiling: need / ceiling."""
        excess_ratio = self.worst.measured_excess_ratio
        assert excess_ratio is not None
        return excess_ratio


def hold(rates: Iterable[PublishedRate], devices: Iterable[PublishedDevice]) -> tuple[HeldRate, ...]:
    """Hold each rate of prefill and decode against its device; none is dropped, what cannot be held says why.

    Of decode the bytes of one step count, of prefill the FLOPs of one token, both from the engine's graph:

    * bytes a second >= tokens/s x (parameters read once + keys and values of the token itself). An empty cache: the
      lengths are not printed, and any more of them needs more.
    * FLOPs a second >= tokens/s x FLOPs of a token that gives no logits and sees itself alone.

    Weights that fit a cache need not come from memory at each step; the fewest that a published step reads are 132 MB.
    """
    named = {device.name: device for device in devices}
    return tuple(_held(rate, named.get(rate.device or "")) for rate in rates if rate.phase in RESOURCES)


def contradictions(held: Iterable[HeldRate]) -> tuple[Contradiction, ...]:
    """Return a contradiction for each device and resource with a rate that needs too much, in the order of the rates.

    Suspect rates are no witnesses: they are held, and left out here.
    """
    groups: dict[tuple[str, Resource], list[HeldRate]] = {}
    for each in held:
        if each.rate.device is not None and each.is_contradicted is not None and not each.rate.is_suspect:
            groups.setdefault((each.rate.device, each.resource), []).append(each)
    found = ((*key, group, [each for each in group if each.is_contradicted]) for key, group in groups.items())
    return tuple(
        Contradiction(
            device=device,
            resource=resource,
            worst=max(against, key=lambda each: each.measured_excess_ratio or 0.0),
            n_contradicted=len(against),
            n_held=len(group),
        )
        for device, resource, group, against in found
        if against
    )


def _held(rate: PublishedRate, device: PublishedDevice | None) -> HeldRate:
    resource = RESOURCES[rate.phase]
    needed_per_s, missing = _need(rate, resource)
    return HeldRate(
        rate=rate,
        resource=resource,
        needed_per_s=needed_per_s,
        missing=missing,
        ceilings=_ceilings(device, resource) if device is not None else {},
    )


def _need(rate: PublishedRate, resource: Resource) -> tuple[float | None, str]:
    tokens_per_s = rate.rate_tokens_per_s
    if tokens_per_s is None:
        return None, "no tokens per second are stated"
    try:
        cost = _token_cost(rate.architecture, rate.quantization, rate.phase)
    except PerfsuiteError as error:
        return None, str(error)
    per_token = cost.flops if resource is Resource.COMPUTE else cost.parameter_bytes + cost.kv_bytes
    return per_token * tokens_per_s, ""


@cache
def _token_cost(architecture_name: str, quantization: str, phase: Phase) -> OpCost:
    """Cost the cheapest token of a phase: alone in a cache of one position, in prefill without logits."""
    architecture = find(architecture_name)
    types = tensor_types(architecture, quantization)
    batch = Batch(n_tokens=1, n_outputs=1 if phase is Phase.DECODE else 0, n_used=1, n_ctx=1)
    settings = Settings(flash_attn=architecture.family.flash_attention)
    return total_cost(engine_graph(architecture, types, batch, settings))


#: The ceilings of each resource, and how a device's fields of them end.
_CEILINGS = {
    Resource.BANDWIDTH: (("measured", "corrected", "theoretical"), "bandwidth_bytes_per_s"),
    Resource.COMPUTE: (("measured_fp16", "measured_fp32", "theoretical_fp16", "theoretical_fp32"), "flops_per_s"),
}


def _ceilings(device: PublishedDevice, resource: Resource) -> dict[str, float]:
    names, ending = _CEILINGS[resource]
    return {name: per_s for name in names if (per_s := getattr(device, f"{name}_{ending}")) is not None}
