"""Published rates that contradict each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.expectation.roofline.published import PublishedRate
from perfsuite.records.events import Phase

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
    found = {_key(rate): rate for rate in rates if rate.phase is Phase.DECODE and rate.tokens_per_s is not None}
    pairs = (
        (rate, found.get((*where, long)))
        for short, long in PAIRS
        for (*where, scenario), rate in found.items()
        if scenario == short
    )
    return tuple(
        SuspectPair(shorter=shorter, longer=longer, ratio=ratio)
        for shorter, longer in pairs
        if longer is not None and (ratio := _ratio(longer, shorter)) > LIMIT_RATIO
    )


def _key(rate: PublishedRate) -> tuple[str | None, ...]:
    return rate.paper, rate.device, rate.architecture, rate.quantization, rate.scenario


def _ratio(longer: PublishedRate, shorter: PublishedRate) -> float:
    assert longer.tokens_per_s is not None
    assert shorter.tokens_per_s is not None
    return longer.tokens_per_s / shorter.tokens_per_s
