"""Published rates that contradict each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.roofline.published import PublishedRate, published_rates
from perfsuite.expectation.roofline.suspect import LIMIT_RATIO, suspect_pairs
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


def test_the_order_of_the_rates_does_not_matter() -> None:
    """The longer prompt may come first."""
    assert suspect_pairs([LONG, SHORT]) == suspect_pairs([SHORT, LONG])
    assert [pair.ratio for pair in suspect_pairs([SHORT, LONG])] == [1.4]


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
