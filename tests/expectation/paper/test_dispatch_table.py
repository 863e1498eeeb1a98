"""Table 8."""

from __future__ import annotations

from perfsuite.expectation.paper.dispatch_table import table_8


def test_dispatches_are_counted_in_the_composition() -> None:
    """19 operators a layer, 16 with fused matrices, and three around the layers."""
    rows = {str(dict(row.inputs)["model"]): (dict(row.inputs), row.value) for row in table_8()}
    assert {name: value for name, (_, value) in rows.items()} == {
        "Llama2-7B-int4": 611,
        "DeepSeek-Qwen2.5-1.5B-int4": 535,
        "DeepSeekv2-Lite-int4": 516,
        "Gemma2-2B-int4": 497,
        "Phi4-3.8B-int4": 515,
        "Qwen3-14B-int4": 763,
        "Qwen3-32B-int4": 1219,
    }
    for name, (inputs, value) in rows.items():
        assert inputs["per_layer"] == (16 if name.startswith("Phi4") else 19)
        assert value == int(inputs["layers"]) * int(inputs["per_layer"]) + 3
