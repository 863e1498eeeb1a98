"""The GGUF metadata of a model of any architecture from its ``config.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perfsuite.errors import ArchitectureError
from perfsuite.records.codec import shown
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.config_architectures import SPECIFIC
from perfsuite.workload.config_classes import GGUF_ARCHITECTURES
from perfsuite.workload.config_keys import KEYS, Values, first_of, head_dim, plain_metadata
from perfsuite.workload.families import family_of
from perfsuite.workload.hyperparameters import Metadata
from perfsuite.workload.model_config import ModelConfig, missing_key, read_config, rope_parameters
from perfsuite.workload.model_shape import MetadataValue, ModelSpec

#: The classes whose graph the suite writes itself.
CLASSES = (
    *("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Gemma2ForCausalLM"),
    *("GPTNeoXForCausalLM", "Phi3ForCausalLM", "PLMForCausalLM", "Qwen2MoeForCausalLM", "DeepseekV2ForCausalLM"),
)

#: Numbers of the functions that make a router's scores. Source: src/llama-hparams.h of llama.cpp.
_GATES = {"softmax": 1, "sigmoid": 2, "sqrtsoftplus": 4}

#: Under any of these a config says that projections have biases.
_BIASES = ("attention_bias", "use_qkv_bias", "qkv_bias", "use_bias", "add_qkv_bias", "qkv_proj_bias")
_TYING = ("tie_word_embeddings", "tie_embedding", "tie_embeddings", "share_input_output_layers")

#: Architectures with biases, and with one matrix for tokens in and out, where their config does not say.
_BIASED = ("qwen", "qwen2", "qwen2vl", "qwen2moe", "dream", "bert", "gpt-oss", "phi2", "gptneox")
_TIED = (
    *("plm", "gemma", "gemma2", "gemma3", "gemma3n", "command-r", "cohere2", "starcoder2", "lfm2", "lfm2moe"),
    *("bloom", "falcon", "gpt2", "mpt", "starcoder", "openelm"),
)
_LATENT = ("deepseek2", "deepseek32", "glm-dsa", "mistral4", "kimi-linear", "hy_v4")

#: Tensors that these have whatever their configs say, and those whose configs' word on biases does not count.
_OWN = {
    "gptneox": {"attn_qkv.weight"},
    "phi3": {"attn_qkv.weight"},
    "deepseek2": {"attn_k_b.weight"},
    "qwen2": {"attn_q.bias"},
    "qwen2moe": {"attn_q.bias"},
}
_UNBIASED = ("gemma2", "phi3", "plm", "deepseek2")

#: Architectures whose sliding windows the engine reads layer by layer.
_WINDOWED = ("exaone4", "olmo2", "afmoe")

#: Architectures whose feed-forward part is four times as wide as the model where a config does not say.
_FOURFOLD = ("gpt2", "bloom", "falcon", "phi2", "mpt", "starcoder", "codeshell")

#: The share of a head that is turned where a config does not say.
_PARTS = {
    **dict.fromkeys(("chatglm", "glm4", "glm4moe", "bailingmoe2"), 0.5),
    **dict.fromkeys(("qwen3next", "qwen35", "qwen35moe", "gptneox"), 0.25),
}

#: What the engine has one value of. *Source*: ``src/llama-hparams.h`` of llama.cpp.
_FIXED: Mapping[str, Mapping[str, Any]] = {
    "gemma3n": {"altup_num_inputs": 4, "altup_active_idx": 0, "laurel_rank": 64},
    "falcon": {"alibi": False, "bias": False},
    "gpt-oss": {"swiglu_limit": 7.0},
    "openelm": {"ffn_with_glu": True, "normalize_qk_projections": True, "share_input_output_layers": True},
    "chatglm": {"add_bias_linear": False, "rmsnorm": True},
}


def spec_of_config(config: Values | Path, *, name: str | None = None) -> Architecture | ModelSpec:
    """Return what a config describes: an architecture that the suite knows itself, or a model that the engine knows.

    An architecture is called `name`, or as the folder of the file. Raises ArchitectureError where it names no class
    that is read, or lacks what the class needs.
    """
    found = read_config(config)
    try:
        if found.class_name in CLASSES:
            return from_config(found, name or (config.resolve().parent.name if isinstance(config, Path) else "unnamed"))
        return _spec(found)
    except KeyError as error:
        raise missing_key(found.where, str(error.args[0]), found.class_name) from error
    except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError, MemoryError) as error:
        raise ArchitectureError(f"{found.where}: is not a config of {found.class_name}: {error}") from error


def left_out(path: Path) -> tuple[str, ...]:
    """Return what a file says, if it is a config, and the model that is made of it has not, in words."""
    return tuple(read_config(path).left_out) if is_config(path) else ()


def is_config(path: Path) -> bool:
    """Whether a path is that of a config, by its suffix, or by how the file begins."""
    if path.suffix == ".json":
        return True
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith(b"{")
    except (OSError, ValueError):  # none is there, or none can be
        return False


def from_config(found: ModelConfig, name: str) -> Architecture:
    """Build an architecture from the config of one of `CLASSES`; raises as `spec_of_config`, or KeyError.

    Keys that are optional in ``transformers`` get its defaults.
    """
    values, architecture = found.values, GGUF_ARCHITECTURES[found.class_name]
    if values.get("mlp_bias"):
        raise ArchitectureError(f"{found.where}: mlp_bias is true, which is not read of {found.class_name}")

    def refusal(key: str, value: object, expected: str) -> ArchitectureError:
        experts = "n_routed_experts" if architecture in _LATENT else "num_experts"
        named = {"feed_forward_length": "intermediate_size", "expert_count": experts, "rope.freq_base": "rope_theta"}
        key = named.get(key) or next((each for each in KEYS[key] if each in values), KEYS[key][0])
        if value is None:
            return missing_key(found.where, key, found.class_name)
        return ArchitectureError(f"{found.where}: {key} is {shown(value)}, expected {expected}")

    n_embd, n_heads = (first_of(values, *KEYS[key]) for key in ("embedding_length", "attention.head_count"))
    for key, size in (("embedding_length", n_embd), ("attention.head_count", n_heads)):
        if size is not None and (not isinstance(size, int) or isinstance(size, bool)):
            raise refusal(key, size, "an integer")
    if n_heads and n_embd and not {"head_dim", "kv_lora_rank"} & set(values) and n_embd % n_heads:
        raise refusal("attention.head_count", n_heads, f"a divisor of hidden_size ({shown(n_embd)})")
    metadata, wanted = dict(_metadata(values, architecture)), set(_wanted(values, architecture))
    if any(each.startswith("rope_") for each in wanted):
        wanted.add(family_of(architecture).rope_factors[0])
    else:
        metadata.pop("rope.scaling.original_context_length", None)
    if architecture in _UNBIASED:
        wanted.discard("attn_q.bias")
    wanted |= _OWN.get(architecture, set())
    return Metadata(
        name=name, gguf_architecture=architecture, values=metadata, n_vocab=None, tensors=wanted, refusal=refusal
    ).architecture()


def _spec(config: ModelConfig) -> ModelSpec:
    values, architecture = config.values, GGUF_ARCHITECTURES[config.class_name]
    if architecture == "nemotron_h" and values.get("n_routed_experts"):
        architecture = "nemotron_h_moe"
    return ModelSpec(
        architecture=architecture, metadata=_metadata(values, architecture), wanted=tuple(_wanted(values, architecture))
    )


def _metadata(values: Values, architecture: str) -> Mapping[str, MetadataValue]:
    for key, only in _FIXED.get(architecture, {}).items():
        if values.get(key, only) != only:
            raise ValueError(f"{key} is {values[key]!r}, expected {only!r}, which is what llama.cpp runs")
    plain = plain_metadata(values)
    if architecture in _FOURFOLD and "feed_forward_length" not in plain:
        plain["feed_forward_length"] = 4 * plain["embedding_length"]
    rope = _rope(values, _PARTS.get(architecture))
    metadata = {**plain, **rope, **_experts(values), **SPECIFIC.get(architecture, _nothing)(values)}
    if architecture in _LATENT:
        metadata |= _latent(values)
    if architecture in _WINDOWED and "layer_types" in values:
        kinds = values["layer_types"]
        metadata["attention.sliding_window_pattern"] = tuple(each == "sliding_attention" for each in kinds)
    _check(metadata)
    return {key: value for key, value in metadata.items() if value is not None}


def _check(metadata: Values) -> None:
    """Refuse what lacks a size that every model has, and lists that are not one value a layer."""
    for key in ("embedding_length", "block_count", "vocab_size"):
        size, name = metadata.get(key), key if key in KEYS[key] else KEYS[key][0]
        if size is None:
            raise KeyError(name)
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} is {size!r}, expected a whole number above 0")
    for key, value in metadata.items():
        if isinstance(value, tuple) and key != "rope.dimension_sections" and len(value) != metadata["block_count"]:
            raise ValueError(f"{len(value)} values of {key} for {metadata['block_count']} layers")
        if isinstance(value, list) or (isinstance(value, tuple) and not all(isinstance(each, int) for each in value)):
            raise ValueError(f"{key} is {shown(value)}, expected whole numbers")


def _nothing(values: Values) -> dict[str, Any]:
    return {}


def _rope(values: Values, part: float | None = None) -> dict[str, Any]:
    parameters = rope_parameters(values)
    base, kind = parameters["rope_theta"], parameters["rope_type"]
    part = part if parameters["partial_rotary_factor"] is None else parameters["partial_rotary_factor"]
    if base is not None and parameters.get("alpha"):  # of a context that was stretched, as Hunyuan's
        base = base * parameters["alpha"] ** (head_dim(values) / (head_dim(values) - 2))
    found: dict[str, Any] = {"rope.freq_base": None if base is None else float(base)}
    if part is not None and part != 1:
        found["rope.dimension_count"] = int(head_dim(values) * float(part))
    if sections := parameters.get("mrope_section"):
        found["rope.dimension_sections"] = tuple([*sections, 0, 0, 0, 0][:4])
    if swa := (values.get("rope_parameters") or {}).get("sliding_attention"):
        found["rope.freq_base_swa"] = float(swa["rope_theta"])
    if kind == "yarn":
        found |= {
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": float(parameters["factor"]),
            "rope.scaling.original_context_length": int(parameters["original_max_position_embeddings"]),
        }
    if kind in ("longrope", "su"):
        original = first_of({**values, **parameters}, "original_max_position_embeddings")
        if original is None:
            raise KeyError("original_max_position_embeddings")
        found["rope.scaling.original_context_length"] = original
    return found


def _experts(values: Values) -> dict[str, Any]:
    gate = first_of(values, "scoring_func", "score_function", "score_func")
    if (first_of(values, *KEYS["expert_count"]) or 0) > 1:
        return {"expert_gating_func": _GATES.get(gate)}
    return {key: None for key in (*KEYS, "expert_gating_func") if key.startswith("expert_")}


def _latent(values: Values) -> dict[str, Any]:
    rank, n_rot = int(values["kv_lora_rank"]), int(values["qk_rope_head_dim"])
    return {
        "attention.head_count_kv": 1,
        "attention.key_length": rank + n_rot,
        "attention.value_length": rank,
        "attention.key_length_mla": int(values["qk_nope_head_dim"]) + n_rot,
        "attention.value_length_mla": int(values["v_head_dim"]),
        "attention.q_lora_rank": int(values.get("q_lora_rank") or 0),
        "rope.dimension_count": n_rot,
    }


def _wanted(values: Values, architecture: str) -> Iterator[str]:
    tied = first_of(values, *_TYING)
    if not (architecture in _TIED if tied is None else tied):
        yield "output.weight"
    has_bias = next((values[key] for key in _BIASES if key in values), architecture in _BIASED)
    if has_bias:
        yield from ("attn_q.bias", "attn_k.bias", "attn_v.bias")
    if architecture == "bert":
        yield from ("attn_output.bias", "ffn_up.bias", "ffn_down.bias", "token_types.weight")
    if architecture == "nomic-bert":
        yield "token_types.weight"
    kind = rope_parameters(values)["rope_type"]
    if kind == "llama3":
        yield "rope_freqs.weight"
    if kind in ("longrope", "su"):
        yield from ("rope_factors_long.weight", "rope_factors_short.weight")
    if values.get("use_qk_norm") or values.get("qk_layernorm"):
        yield from ("attn_q_norm.weight", "attn_k_norm.weight")
    if architecture == "stablelm" and not values.get("use_parallel_residual"):
        yield from ("ffn_norm.weight", "ffn_norm.bias")
    has_scores = any(values.get(key) for key in ("use_expert_bias", "moe_use_aux_free"))
    if has_scores or values.get("topk_method") == "noaux_tc" or architecture == "glm4moe":
        yield "exp_probs_b.bias"
