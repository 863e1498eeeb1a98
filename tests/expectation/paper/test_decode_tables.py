"""Tables 7 and 9."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.decode_tables import table_7, table_9
from perfsuite.expectation.paper.table_row import PROMPTS, TableRow
from perfsuite.workload.variant import variant_names


def _by_prompt(rows: list[TableRow], variant: str, metric: str) -> dict[int, float]:
    found = [row for row in rows if dict(row.inputs)["variant"] == variant and row.metric == metric]
    return {int(dict(row.inputs)["prompt"]): row.value for row in found}


@pytest.mark.parametrize("metric", ["gops", "mem_gib"])
@pytest.mark.parametrize("variant", variant_names())
def test_table_7_is_a_straight_line(variant: str, metric: str) -> None:
    """Operations and memory of every variant are affine in the prompt."""
    values = _by_prompt(list(table_7()), variant, metric)
    slope = (values[65536] - values[32]) / (65536 - 32)
    assert slope > 0
    for prompt, value in values.items():
        assert value == pytest.approx(values[32] + slope * (prompt - 32), rel=1e-12)


@pytest.mark.parametrize("variant", variant_names())
def test_table_9_grows_by_the_same_at_every_prompt(variant: str) -> None:
    """The last of 2000 tokens has 1999 positions more, whatever came first, and the ratio falls to 1."""
    rows = list(table_9())
    first, last, ratio = (_by_prompt(rows, variant, metric) for metric in ("first_gib", "last_gib", "ratio"))
    growth = last[32] - first[32]
    ratios = [ratio[prompt] for prompt in PROMPTS]
    assert [last[prompt] - first[prompt] for prompt in PROMPTS] == pytest.approx([growth] * len(PROMPTS))
    assert ratios == sorted(ratios, reverse=True)
    assert all(each > 1.0 for each in ratios)


def test_the_tables_differ_by_what_rope_moves() -> None:
    """Unfused, whole tables are read and written: 0.1875 GiB more, less the token's own elements."""
    whole = _by_prompt(list(table_7()), "bf16-bf16", "mem_gib")[128]
    alone = _by_prompt(list(table_9()), "bf16-bf16", "first_gib")[128]
    assert whole - alone == pytest.approx(0.1875 - 32 * 4 * 4096 * 2 / (1 << 30))
