"""Published rates compared with the published ceilings of their devices."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from perfsuite.expectation.roofline.ceiling import Resource
from perfsuite.expectation.roofline.published import (
    LIMIT_RATIO,
    HeldRate,
    PublishedRate,
    contradictions,
    hold,
    published_devices,
    published_rates,
    suspect_pairs,
)
from perfsuite.records.events import Phase

SHORT = PublishedRate(
    paper="A",
    device="B",
    architecture="c",
    quantization="q8_0",
    scenario="siso",
    phase=Phase.DECODE,
    tokens_per_s=10.0,
    latency_ns=None,
    n_tokens=None,
    table="1",
    is_suspect=False,
    note="",
)
LONG = replace(SHORT, scenario="liso", tokens_per_s=14.0)


def test_the_rule_finds_the_row_that_the_tables_mark() -> None:
    """Of all published rates the rule finds one pair, Qwen3-0.6B's 100 against 160, and its first is marked."""
    rates = published_rates()
    (pair,) = suspect_pairs(rates)
    assert (pair.shorter.architecture, pair.shorter.quantization) == ("qwen3-0.6b", "q4_k_m")
    assert (pair.shorter.tokens_per_s, pair.longer.tokens_per_s, pair.ratio) == (100.0, 160.0, 1.6)
    assert [rate for rate in rates if rate.is_suspect] == [pair.shorter]


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens_per_s": 10.0 * LIMIT_RATIO},
        {"tokens_per_s": 5.0},
        {"tokens_per_s": None, "latency_ns": 1},
        {"scenario": "lilo"},
        {"phase": Phase.PREFILL},
        {"device": "other"},
        {"quantization": "f16"},
        {"paper": "other"},
    ],
)
def test_what_is_not_comparable_is_not_suspect(changes: dict[str, object]) -> None:
    """A small excess, the usual order, another generation length, phase, device, type or paper show nothing."""
    assert suspect_pairs([SHORT, replace(LONG, **changes)]) == ()  # type: ignore[arg-type]


@cache
def held() -> tuple[HeldRate, ...]:
    return hold(published_rates(), published_devices())


def one(device: str, architecture: str, quantization: str, scenario: str, phase: Phase = Phase.DECODE) -> HeldRate:
    def key(of: PublishedRate) -> tuple[object, ...]:
        return of.device, of.architecture, of.quantization, of.scenario, of.phase

    (found,) = (each for each in held() if key(each.rate) == (device, architecture, quantization, scenario, phase))
    return found


def needed(of: HeldRate) -> float:
    assert of.needed_per_s is not None
    return of.needed_per_s


def test_the_pi_decodes_faster_than_its_memory() -> None:
    """SmolLM2-135M Q8_0 at 65 tokens/s needs 9.3 GB/s: more than 3.98 printed and 5.97 corrected, less than 17.1."""
    found = one("Raspberry Pi 5", "smollm2-135m", "q8_0", "siso")
    assert f"{needed(found) / 1e9:.1f}" == "9.3"
    ceilings = {"measured": 3.98, "corrected": 5.97, "theoretical": 17.1}
    assert {name: per_s / 1e9 for name, per_s in found.ceilings.items()} == pytest.approx(ceilings)
    excess = {name: found.excess_ratio(name) for name in ceilings}
    assert excess == pytest.approx({name: 9.3 / per_s for name, per_s in ceilings.items()}, rel=0.01)
    assert found.is_contradicted is True
    assert [each.n_held for each in contradictions([found])] == [1]
    assert contradictions([replace(found, rate=replace(found.rate, is_suspect=True))]) == ()


def test_the_worst_of_each_device() -> None:
    """Of five devices two are contradicted, in bandwidth alone, and the worst rate of each is named."""
    found = contradictions(held())
    assert [(each.device, each.resource, each.n_contradicted, each.n_held) for each in found] == [
        ("Raspberry Pi 5", Resource.BANDWIDTH, 16, 20),
        ("Apple M1 Pro", Resource.BANDWIDTH, 20, 71),
    ]
    pi, m1 = found
    assert (pi.worst.rate.architecture, m1.worst.rate.architecture) == ("qwen2.5-0.5b", "llama-3.2-1b")
    assert pi.excess_ratio == pytest.approx(2.64, abs=0.01)
    assert m1.excess_ratio == pytest.approx(1.34, abs=0.01)


def test_decode_needs_memory_and_no_more_than_its_data_sheet() -> None:
    """Or a count of bytes would be wrong; the fewest that a step reads are 132 MB, which none of these caches keeps."""
    steps = [each for each in held() if each.resource is Resource.BANDWIDTH and each.needed_per_s]
    assert max(each.excess_ratio("theoretical") or 0.0 for each in steps) < 1.0
    read = [needed(each) / each.rate.rate_tokens_per_s for each in steps if each.rate.rate_tokens_per_s]
    assert f"{min(read) / 1e6:.0f}" == "132"


def test_prefill_exceeds_floats_but_not_halves() -> None:
    """The Jetson's prefill needs 2.3 times its measured FP32 and a third of its FP16: no contradiction."""
    found = one("Jetson Orin Nano Super 8G", "qwen2.5-1.5b", "q8_0", "siso", Phase.PREFILL)
    assert found.resource is Resource.COMPUTE
    assert found.excess_ratio("measured_fp32") == pytest.approx(2.28, abs=0.01)
    assert found.measured_excess_ratio == found.excess_ratio("measured_fp16") == pytest.approx(0.32, abs=0.01)
    assert found.is_contradicted is False


def test_integers_beyond_the_ceilings_of_floats_are_undecided() -> None:
    """Quantised weights may be multiplied as integers, F16 ones may not."""
    found = one("Apple M1 Pro", "qwen2.5-1.5b", "q8_0", "siso", Phase.PREFILL)
    beyond = replace(found, needed_per_s=1e15)
    assert beyond.is_contradicted is None
    assert replace(beyond, rate=replace(beyond.rate, quantization="f16")).is_contradicted is True
    decode = one("Apple M1 Pro", "qwen2.5-1.5b", "q8_0", "siso")
    assert replace(decode, needed_per_s=1e15).is_contradicted is True


def test_nothing_is_dropped() -> None:
    """Each rate of prefill and decode is held; what cannot be says what is missing: the type, the lengths, the name."""
    rates = [rate for rate in published_rates() if rate.phase in (Phase.PREFILL, Phase.DECODE)]
    assert [each.rate for each in held()] == rates
    assert all((each.needed_per_s is None) is bool(each.missing) for each in held())
    missing = {each.rate.architecture: each.missing for each in held() if each.rate.device == "Google Pixel 8 Pro"}
    assert "architecture 'qwen2-0.5b' is not in the catalogue" in missing["qwen2-0.5b"]
    assert "quantisation '4-bit' is unknown" in missing["qwen2.5-0.5b"]
    assert {each.missing for each in held() if each.rate.paper == "RooflineBench"} == {""}


def test_without_a_measured_ceiling_nothing_is_said() -> None:
    """LIFE prints no measured bandwidth: its rates are reported beside the theoretical one and contradict nothing."""
    found = one("NVIDIA V100", "llama-2-7b", "f16", "p2048")
    assert found.excess_ratio("theoretical") == pytest.approx(0.455, abs=0.001)
    assert found.excess_ratio("measured") is None
    assert found.measured_excess_ratio is None
    assert found.is_contradicted is None
    assert contradictions([found]) == ()
    unnamed = [each for each in held() if each.rate.device is None]  # lm-Meter's table does not tell its phone
    assert len(unnamed) == 8
    assert all(each.ceilings == {} and each.is_contradicted is None for each in unnamed)
