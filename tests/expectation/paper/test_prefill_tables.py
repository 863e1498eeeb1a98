"""Tables 4 and 5."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.prefill_tables import table_4, table_5
from perfsuite.expectation.paper.table_row import PROMPTS


def test_shares_leave_little_to_the_rest() -> None:
    """Products and softmax are all but 0.03 % of the operations at every prompt."""
    for prompt in PROMPTS:
        shares = [
            row.value for row in table_4() if row.inputs == (("prompt", prompt),) and str(row.metric).endswith("_pct")
        ]
        assert len(shares) == 3
        assert 99.97 < sum(shares) < 100.0


def test_the_cache_doubles_with_the_prompt() -> None:
    """32 tokens of bf16 take 1/64 GiB, 65536 take 32 GiB."""
    sizes = [row.value for row in table_4() if row.metric == "kv_gib"]
    assert sizes == [prompt / 2048 for prompt in PROMPTS]


@pytest.mark.parametrize("variant", ["bf16-bf16", "bf16-int4"])
def test_unfused_traffic_is_a_parabola(variant: str) -> None:
    """Three prompts tell all others: constant weights, a token's elements, and the scores."""
    read = {
        dict(row.inputs)["prompt"]: row.value
        for row in table_5()
        if row.metric == "memrd_gib" and dict(row.inputs)["variant"] == variant
    }
    scores = 2 * 2 * 32 * 32 / (1 << 30)
    flat = {prompt: value - scores * int(prompt) ** 2 for prompt, value in read.items()}
    slope = (flat[64] - flat[32]) / 32
    for prompt, value in flat.items():
        assert value == pytest.approx(flat[32] + slope * (int(prompt) - 32), rel=1e-6)
