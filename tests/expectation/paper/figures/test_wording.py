"""Variants under one label."""

from __future__ import annotations

from perfsuite.expectation.paper.figures.wording import variants_by


def test_variants_of_the_same_value_share_a_label() -> None:
    """Groups come in the order of their first variant."""
    assert variants_by(lambda variant: variant.kv) == (
        ("bf16-bf16, bf16-int4, bf16-int4-fused, bf16-int4-mla, bf16-int4-lora", "bf16"),
        ("bf16-int4-kv4, QuaRot-w4a4kv4", "int4"),
        ("fp16-fp16", "fp16"),
    )
