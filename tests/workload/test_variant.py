"""The variants under which an architecture runs."""

from __future__ import annotations

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.workload.variant import find_variant


@pytest.mark.parametrize(
    ("name", "weights", "kv", "lora", "fused"),
    [
        ("bf16-bf16", "bf16", "bf16", False, False),
        ("bf16-int4", "int4", "bf16", False, False),
        ("bf16-int4-fused", "int4", "bf16", False, True),
        ("bf16-int4-kv4", "int4", "int4", False, True),
        ("bf16-int4-mla", "int4", "bf16", False, True),
        ("bf16-int4-lora", "int4", "bf16", True, True),
        ("QuaRot-w4a4kv4", "int4", "int4", False, True),
        ("fp16-fp16", "fp16", "fp16", False, False),
    ],
)
def test_a_variant_has_the_flags_of_the_paper(name: str, weights: str, kv: str, lora: bool, fused: bool) -> None:
    """Weights, KV cache, adapters and fused attention are as LIFE's table of variants says."""
    variant = find_variant(name)
    assert (variant.weights, variant.kv, variant.lora, variant.fused) == (weights, kv, lora, fused)
    assert (variant.activations == "int8") is (name == "QuaRot-w4a4kv4")


def test_an_unknown_variant_is_refused_with_what_is_accepted() -> None:
    """The error names the value and lists the names."""
    with pytest.raises(PerfsuiteError, match=r"variant 'bf16-int5' is unknown; accepted are bf16-bf16, .*fp16-fp16"):
        find_variant("bf16-int5")
