"""Published rates compared with each other, and against the published ceilings of their devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.graph import Batch, Settings, engine_graph, total_cost
from perfsuite.expectation.roofline.ceiling import Resource
from perfsuite.expectation.roofline.published import PublishedDevice, PublishedRate
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import OpCost
from perfsuite.workload.catalog import find
from perfsuite.workload.quantization import tensor_types

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
