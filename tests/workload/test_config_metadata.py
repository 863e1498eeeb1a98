from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import listed
from perfsuite.workload.config_classes import GGUF_ARCHITECTURES, UNREAD
from perfsuite.workload.config_metadata import CLASSES, left_out, spec_of_config
from perfsuite.workload.model_shape import ModelSpec

FIELD = Path(__file__).parents[1] / "data" / "field"
#: What published configs say of models of the catalogue, by the keys that each class has.
CONFIGS: dict[str, dict[str, Any]] = json.loads((FIELD / "configs.json").read_text(encoding="utf-8"))
_GEMMA, _LFM2 = CONFIGS["gemma-3-1b"], json.loads((FIELD / "06-config-lfm2-350m.json").read_text(encoding="utf-8"))


def _spec(config: dict[str, Any]) -> ModelSpec:
    found = spec_of_config(config)
    assert isinstance(found, ModelSpec)
    return found


def _field(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIELD / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", [*CONFIGS, "lfm2-350m", "gpt-oss-20b"])
def test_a_config_becomes_the_catalogues_model(name: str) -> None:
    """Metadata and optional tensors come out of a published config as the catalogue has them, so its parameters do."""
    fields = {"lfm2-350m": _LFM2, "gpt-oss-20b": _field("02-config-gpt-oss-20b")}
    found, expected = _spec(CONFIGS.get(name) or fields[name]), listed(name)
    assert found.architecture == expected.architecture
    assert dict(found.metadata) == dict(expected.metadata)
    assert set(found.wanted) == set(expected.wanted)


def test_openelms_layers_have_widths_and_heads_of_their_own() -> None:
    """Feed-forward widths follow from multipliers, rounded to the divisor; heads are one number a layer."""
    metadata = _spec(_field("01-config-openelm-1.1b")).metadata
    widths, heads, kv_heads = (
        metadata[key] for key in ("feed_forward_length", "attention.head_count", "attention.head_count_kv")
    )
    assert isinstance(widths, tuple)
    assert (len(widths), widths[:3], widths[-1]) == (28, (1024, 1280, 1536), 8192)
    assert heads == (16,) * 3 + (20,) * 7 + (24,) * 8 + (28,) * 6 + (32,) * 4
    assert kv_heads == (4,) * 3 + (5,) * 7 + (6,) * 8 + (7,) * 6 + (8,) * 4


def test_glm_4_turns_half_of_each_head_by_the_base_that_its_ratio_gives() -> None:
    """RoPE's base is 10,000 times rope_ratio, and the vocabulary is the padded one."""
    metadata = _spec(_field("04-config-glm-4-9b")).metadata
    found = [metadata[key] for key in ("rope.freq_base", "rope.dimension_count", "vocab_size")]
    assert found == [5_000_000.0, 64, 151_552]
    newer = {**_field("04-config-glm-4-9b"), "rope_ratio": None, "rope_theta": 1e6}
    assert _spec(newer).metadata["rope.freq_base"] == 1e6


def test_nemotron_h_has_four_layers_with_a_cache() -> None:
    """The letters of the pattern are layers, and so are the words of newer configs; infinity in a range is no error."""
    path = FIELD / "05-config-nemotron-h-4b.json"
    found = spec_of_config(path)
    assert isinstance(found, ModelSpec)
    widths, kv_heads = (found.metadata[key] for key in ("feed_forward_length", "attention.head_count_kv"))
    assert isinstance(widths, tuple)
    assert isinstance(kv_heads, tuple)
    assert (len(kv_heads), kv_heads.count(8), widths.count(12288), widths.count(0)) == (52, 4, 24, 28)
    config = _field("05-config-nemotron-h-4b")
    words = {"M": "mamba", "*": "attention", "-": "mlp"}
    config["layers_block_type"] = [words[each] for each in config.pop("hybrid_override_pattern")]
    assert _spec(config).metadata == found.metadata


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (CONFIGS["llama-4-scout"], ["vision_config: only the model of text is read"]),
        (
            CONFIGS["gemma-3n-e2b"],
            [
                "audio_config, vision_config: only the model of text is read",
                "vocab_size is 262400: tokens of images and sound are left out, 262144 are those of text",
            ],
        ),
        (
            CONFIGS["deepseek-v3"],
            ["num_nextn_predict_layers: the layers that predict further tokens are left out"],
        ),
        ("02", ["quantization_config: it is published as 'mxfp4'; here its weights are of the type asked for"]),
        (_GEMMA, []),
    ],
)
def test_what_is_left_out_is_said(tmp_path: Path, config: Any, told: list[str]) -> None:
    """Parts that see or hear, layers and tokens that are not made, and types that are not taken over are named."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(_field("02-config-gpt-oss-20b") if config == "02" else config))
    assert list(left_out(path)) == told


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
def test_a_family_within_a_config_of_several_models_is_an_architecture(key: str) -> None:
    """The class of the nested model of text counts, whatever llama.cpp calls the whole."""
    text = {**_GEMMA, "architectures": ["LlamaForCausalLM"], "head_dim": 288}
    found = spec_of_config({"architectures": ["InternVLChatModel"], key: text, "vision_config": {}}, name="seen")
    assert found == spec_of_config(text, name="seen")


def test_rope_parameters_of_two_kinds_of_attention_are_read() -> None:
    """Newer configs keep a base for layers with a window, and one for the rest."""
    rope = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
    config = {key: value for key, value in _GEMMA.items() if not key.startswith("rope_")}
    assert _spec({**config, "rope_parameters": rope}).metadata == _spec(_GEMMA).metadata


@pytest.mark.parametrize("architecture", UNREAD)
def test_a_class_whose_keys_are_not_read_is_refused(architecture: str) -> None:
    """Every class of such an architecture names the keys of it, those of the config where it has some."""
    name = next(each for each, known in GGUF_ARCHITECTURES.items() if known == architecture)
    first = UNREAD[architecture].split()[0]
    with pytest.raises(
        ArchitectureError, match=f"{name} is not read, of which {first} shapes the model; give its GGUF"
    ):
        spec_of_config({"architectures": [name], first: 1})
    with pytest.raises(ArchitectureError, match=f"{name} is not read, of which {first}"):
        spec_of_config({"architectures": [name]})


def test_biases_and_an_output_matrix_are_wanted_where_a_config_says_so() -> None:
    config = {**_GEMMA, "architectures": ["SeedOssForCausalLM"], "attention_bias": True, "tie_word_embeddings": False}
    assert set(_spec(config).wanted) == {"output.weight", "attn_q.bias", "attn_k.bias", "attn_v.bias"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["Nobody"]}, "architecture 'Nobody' is none that llama.cpp converts"),
        ({}, "key 'architectures' is missing"),
        ({"architectures": ["Gemma3ForCausalLM"]}, "key 'hidden_size' is missing, which Gemma3ForCausalLM needs"),
        ({**_GEMMA, "vocab_size": 0}, "is not a config of Gemma3ForCausalLM: vocab_size is 0, expected a whole number"),
        ({**_LFM2, "num_key_value_heads": [8, 4]}, "is not a config of Lfm2ForCausalLM"),
        ({**_LFM2, "num_hidden_layers": "many"}, "is not a config of Lfm2ForCausalLM"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, config: dict[str, Any], message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    with pytest.raises(ArchitectureError) as raised:
        spec_of_config(path)
    assert str(raised.value).startswith(f"{path}: {message}")


_LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 384,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
}
_LATENT = {"kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 64}
_EXTRA: dict[str, dict[str, Any]] = {
    "Gemma2ForCausalLM": {"sliding_window": 32, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    "GPTNeoXForCausalLM": {"rotary_pct": 0.25, "layer_norm_eps": 1e-5},
    "PLMForCausalLM": _LATENT,
    "Qwen2MoeForCausalLM": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "shared_expert_intermediate_size": 256,
    },
    "DeepseekV2ForCausalLM": {
        **_LATENT,
        "n_routed_experts": 4,
        "n_shared_experts": 2,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
    },
}


def _config(of: str = "LlamaForCausalLM", **changes: Any) -> dict[str, Any]:
    return {**_LLAMA, **_EXTRA.get(of, {}), "architectures": [of], **changes}


def from_config(config: dict[str, Any] | Path, **changes: str) -> Architecture:
    found = spec_of_config(config, **changes)
    assert isinstance(found, Architecture)
    return found


@pytest.mark.parametrize("of", CLASSES)
def test_every_class_converts(of: str) -> None:
    assert from_config(_config(of)).gguf_architecture == GGUF_ARCHITECTURES[of]


@pytest.mark.parametrize("of", CLASSES)
def test_every_needed_key_is_named_when_missing(of: str) -> None:
    config = _config(of)
    for key in config:
        rest = {other: value for other, value in config.items() if other != key}
        try:
            from_config(rest, name="m")
        except ArchitectureError as error:
            assert str(error).startswith(f"config: key {key!r} is missing")  # noqa: PT017


def test_defaults_are_those_of_transformers() -> None:
    """Absent KV heads, head size, RoPE base and tying get the library's defaults."""
    found = from_config(_config())
    assert (found.n_kv_heads, found.head_dim, found.rope_freq_base) == (4, 64, 10000.0)
    assert not found.tied_embeddings
    assert from_config(_config("Gemma2ForCausalLM")).tied_embeddings


@pytest.mark.parametrize(
    "rope",
    [
        {"rotary_emb_base": 50000, "rotary_pct": 0.25},
        {"rope_theta": 50000, "partial_rotary_factor": 0.25},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 50000, "partial_rotary_factor": 0.25}},
    ],
)
def test_base_and_turned_part_are_read_under_each_name(rope: dict[str, Any]) -> None:
    config = {key: value for key, value in _config("GPTNeoXForCausalLM").items() if key != "rotary_pct"}
    found = from_config({**config, **rope})
    assert (found.rope_freq_base, found.n_rot) == (50000.0, 16)


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_rope_factors_follow_the_scaling(key: str) -> None:
    """Llama 3's scaling puts frequency factors into the file, under the old and the new key."""
    scaling: dict[str, Any] = {key: {"rope_type": "llama3", "rope_theta": 500000.0}}
    found = from_config(_config(**scaling))
    assert found.rope_freq_factors
    assert found.rope_freq_base == 500000.0


def test_long_rope_needs_the_original_context() -> None:
    scaling = {"type": "longrope", "original_max_position_embeddings": 128}
    found = from_config(_config("Phi3ForCausalLM", rope_scaling=scaling, partial_rotary_factor=0.75))
    assert (found.rope_freq_factors, found.n_ctx_orig, found.n_rot) == (True, 128, 48)
    with pytest.raises(ArchitectureError, match="key 'original_max_position_embeddings' is missing"):
        from_config(_config("Phi3ForCausalLM", rope_scaling={"type": "longrope"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": []}, "key 'architectures' is missing"),
        ({"hidden_size": "wide"}, "hidden_size is 'wide', expected an integer"),
        ({"rms_norm_eps": "tiny"}, "rms_norm_eps is 'tiny', expected a number"),
        ({"mlp_bias": True}, "mlp_bias is true, which is not read of LlamaForCausalLM"),
        ({"num_attention_heads": 0}, "n_heads is 0, expected a positive integer"),
    ],
)
def test_wrong_values_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchitectureError, match=message):
        from_config(_config(**changes))
