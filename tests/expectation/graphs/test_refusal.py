"""Settings that llama.cpp refuses."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from perfsuite.expectation.graphs.refusal import refusal
from perfsuite.expectation.graphs.request import Settings
from perfsuite.workload.catalog import find, names


@pytest.mark.parametrize("name", names())
def test_the_engines_own_settings_are_refused_by_none(name: str) -> None:
    """An F16 cache is accepted by all, with flash attention where the architecture has it and without it."""
    architecture = find(name)
    assert refusal(architecture, Settings(flash_attn=False)) is None
    assert (refusal(architecture, Settings()) is None) is architecture.family.flash_attention


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("smollm2-135m", Settings(type_k="q9"), "type_k is 'q9', which is no ggml type"),
        ("smollm2-135m", Settings(lora_rank=0), "lora_rank is 0, expected a positive integer or None"),
        ("smollm2-135m", Settings(flash_attn=False, type_v="q8_0"), "a quantised cache of values (type_v is q8_0)"),
        ("smollm2-135m", Settings(type_k="q4_k"), "type_k is q4_k, whose block does not divide heads of 64"),
        ("deepseek-v2-lite", Settings(type_k="q8_0"), "keys and values in one tensor, not q8_0, f16"),
        ("plm-1.8b", Settings(), "'plm' cannot run with flash attention"),
    ],
)
def test_a_refusal_tells_the_setting_and_its_value(name: str, settings: Settings, reason: str) -> None:
    """What does not go together is named with what it is."""
    assert re.search(re.escape(reason), refusal(find(name), settings) or "")


def test_keys_may_be_quantised_without_flash_attention() -> None:
    """Only values are transposed in the cache without flash attention, and cannot be quantised."""
    settings = Settings(flash_attn=False, type_k="q8_0")
    assert refusal(find("smollm2-135m"), settings) is None
    assert refusal(find("smollm2-135m"), replace(settings, type_v="q8_0")) is not None
