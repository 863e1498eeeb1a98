from __future__ import annotations

from collections.abc import Callable

from perfsuite.workload.architecture import Architecture
from perfsuite.workload.hyperparameters import hyperparameters


def test_absent_traits_have_no_key(tiny: Callable[..., Architecture]) -> None:
    """A plain architecture gets no key of sliding windows, soft caps, experts or latent attention."""
    keys = " ".join(hyperparameters(tiny()))
    assert not [word for word in ("sliding", "softcap", "expert", "lora", "parallel") if word in keys]


def test_absorbed_latent_attention_is_one_wide_head(tiny: Callable[..., Architecture]) -> None:
    """DeepSeek-V2's cache holds one head of the latent rank and the rotary part."""
    values = hyperparameters(tiny("deepseek2"))
    assert (values["attention.head_count_kv"], values["attention.key_length"]) == (1, 256 + 32)
    assert (values["attention.key_length_mla"], values["attention.value_length_mla"]) == (64, 64)
