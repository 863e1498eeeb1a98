"""What is asked for beside an architecture."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.requests.optimisations import Optimisations
from perfsuite.workload.variant import find_variant


@pytest.mark.parametrize(
    ("changes", "adapters", "inline"),
    [
        ({}, None, None),
        ({"variant": find_variant("bf16-int4")}, None, None),
        ({"variant": find_variant("bf16-int4-lora")}, 16, 16),
        ({"variant": find_variant("bf16-int4-lora"), "lora_rank": 64}, 64, 64),
        ({"variant": find_variant("bf16-int4"), "lora_rank": 8}, 8, 8),
        ({"variant": find_variant("bf16-int4-lora"), "lora_merged": True}, 16, None),
    ],
)
def test_adapters_are_the_variants_or_named(changes: dict[str, Any], adapters: int | None, inline: int | None) -> None:
    """A rank means adapters; those of a variant have rank 16 by themselves; merged ones run in no pass."""
    optimisations = Optimisations(**changes)
    assert optimisations.adapter_rank == adapters
    assert optimisations.inline_rank == inline


@pytest.mark.parametrize(
    ("field", "option", "most"),
    [
        ("lora_rank", "--lora-rank", 65536),
        ("chunk", "--chunk", 1048576),
        ("n_sequences", "--batch", 4096),
        ("tile", "--tile", 65536),
    ],
)
@pytest.mark.parametrize("value", [0, -4, 10**9])
def test_counts_out_of_range_are_refused(field: str, option: str, most: int, value: int) -> None:
    """The message names the option, the value and what is accepted."""
    changes: dict[str, Any] = {field: value}
    with pytest.raises(PerfsuiteError, match=rf"^{option}={value}: expected an integer from 1 to {most}$"):
        Optimisations(**changes)


def test_merging_nothing_is_refused() -> None:
    """Without adapters there is nothing to merge."""
    with pytest.raises(PerfsuiteError, match=r"^--lora-merged: there is no adapter to merge; give --lora-rank or "):
        Optimisations(variant=find_variant("bf16-int4"), lora_merged=True)
