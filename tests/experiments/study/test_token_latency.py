"""Seconds of a token over prompts of several lengths."""

from __future__ import annotations

import math

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.token_latency import TokenLatency, over_prompts


def test_every_prompt_counts_once() -> None:
    """Three prompts of 10 tokens at 1 s and one of 50 at 3 s: 6 s for 80 tokens; decode 3 x 0.1 and 0.5 s by four."""
    found = over_prompts(
        {10: [1_000_000_000], 50: [3_000_000_000]},
        {10: [100_000_000], 50: [500_000_000]},
        {10: 3, 50: 1},
        source="measured",
    )
    assert found.prefill_samples_s == (pytest.approx(6.0 / 80.0),)
    assert found.decode_samples_s == (pytest.approx(0.2),)


def test_processes_are_samples_and_the_median_counts() -> None:
    found = over_prompts({1: [5, 1, 9], 2: [5, 1, 9, 7]}, {1: [30, 10, 20], 2: [30, 10, 20]}, {1: 1, 2: 1}, source="x")
    assert len(found.prefill_samples_s) == 3
    assert found.prefill_s_per_token == pytest.approx(10e-9 / 3)
    assert found.decode_s_per_token == pytest.approx(20e-9)


@pytest.mark.parametrize("samples", [(), (0.0,), (1.0, -1.0), (math.nan,), (math.inf,), (1e-300,), (1e300,)])
def test_what_is_no_latency_is_refused(samples: tuple[float, ...]) -> None:
    """No samples, and times that are not above 0, with where they come from."""
    with pytest.raises(PerfsuiteError, match=r"latency from run\.json"):
        TokenLatency(prefill_samples_s=(1.0,), decode_samples_s=samples, source="run.json")
    with pytest.raises(PerfsuiteError, match="expected times above 0"):
        TokenLatency(prefill_samples_s=samples, decode_samples_s=(1.0,), source="run.json")
