"""Which ggml type each tensor of a model gets under a weight quantisation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from perfsuite.errors import QuantizationError, meant
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.model_shape import ModelShape, shape_of
from perfsuite.workload.tensors import TensorSpec

# The mixtures and the type that most of their matrices have.
_MIXTURES = {"q4_k_s": "Q4_K", "q4_k_m": "Q4_K", "q5_k_s": "Q5_K", "q5_k_m": "Q5_K"}

# What llama.cpp takes where a row is not a multiple of the block. Source: src/llama-quant.cpp.
_FALLBACKS = {
    **dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"),
    **dict.fromkeys(("Q2_0", "Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}

# What llama.cpp's quantiser leaves alone. Source: tensor_allows_quantization in src/llama-quant.cpp.
_UNQUANTIZED = (
    *("norm", "ffn_gate_inp.", "altup", "laurel", "per_layer_model_proj", "position_embd", "token_types"),
    *("_conv1d", "shortconv.conv", "indexer.k_proj", "indexer.q_proj", "_ape.", "attn_rel_b"),
    "mm.input_projection",
    *(
        "time_mix_lerp_fused",
        "time_mix_first",
        "time_mix_w",
        "time_mix_v",
        "time_mix_a",
        "time_mix_g",
        "time_mix_decay_w",
    ),
)

# Kernels of convolutions, which the engine takes in half precision only.
_HALF_KERNELS = ("conv1d.weight", ".conv1.weight", ".conv2.weight", ".dw.weight", "patch_embd.weight")

_VALUE_LIKE = ("attn_qkv.weight", "attn_kv_b.weight", "attn_v.weight")


def quantizations() -> tuple[str, ...]:
    """List the accepted names: each weight type for itself, then llama.cpp's mixtures."""
    return (*(each.name.lower() for each in GGML_TYPES.values() if each.is_weight), *_MIXTURES)


def check_quantization(quantization: str) -> None:
    """Raise QuantizationError, listing what is accepted, if the name is unknown."""
    if quantization not in quantizations():
        accepted = f"{', '.join(quantizations())}{meant(quantization, quantizations())}"
        raise QuantizationError(f"quantisation {quantization!r} is unknown; accepted are {accepted}")


def tensor_type(quantization: str, spec: TensorSpec, model: Architecture | ModelShape) -> str:
    """Return the ggml type of a tensor.

    A plain type such as ``q4_0`` goes to every matrix ('pure'); a mixture such as ``q4_k_m`` follows llama.cpp's
    recipe for it without an importance matrix. Norms, biases, other one-dimensional tensors and expert routers
    stay F32. A row that is not a multiple of the type's block gets llama.cpp's fallback, at last F16.

    *Source*: ``tensor_allows_quantization``, ``llama_tensor_get_type_impl`` and ``tensor_type_fallback`` in
    ``src/llama-quant.cpp`` of llama.cpp.
    """
    check_quantization(quantization)
    if not is_quantizable(spec):
        return "F16" if spec.name.endswith(_HALF_KERNELS) and not spec.name.startswith("blk.") else "F32"
    if quantization in _MIXTURES:
        return _fitting(_mixed(quantization, spec, model), spec)
    return _fitting(quantization.upper(), spec)


def tensor_types(model: Architecture | ModelShape, quantization: str) -> Mapping[str, str]:
    """Map every tensor of the model to its ggml type; the mapping is read-only."""
    check_quantization(quantization)
    shape = shape_of(model)
    return MappingProxyType({spec.name: tensor_type(quantization, spec, shape) for spec in shape.tensors})


def is_quantizable(spec: TensorSpec) -> bool:
    """Whether llama.cpp would quantise the tensor: a matrix, neither norm nor router, nor small in every model."""
    if len(spec.ne) < 2 or spec.ne[0] == 1 or not spec.name.endswith("weight") or spec.name.endswith(_HALF_KERNELS):
        return False
    return not any(part in spec.name for part in _UNQUANTIZED)


def _fitting(wanted: str, spec: TensorSpec) -> str:
    if GGML_TYPES[wanted].fits(spec.ne[0]):
        return wanted
    fallback = _FALLBACKS.get(wanted, wanted)
    return fallback if GGML_TYPES[fallback].fits(spec.ne[0]) else "F16"


def _mixed(quantization: str, spec: TensorSpec, model: Architecture | ModelShape) -> str:
    base = _MIXTURES[quantization]
    if spec.name == "output.weight" or (spec.name == "token_embd.weight" and model.tied_embeddings):
        return "Q6_K" if GGML_TYPES[base].fits(spec.ne[0]) else "Q8_0"
    if not spec.name.startswith("blk."):
        return base
    layer, n_layers = int(spec.name.split(".")[1]), model.n_layers
    is_value, is_down = spec.name.endswith(_VALUE_LIKE), "ffn_down" in spec.name
    if quantization.endswith("_m"):
        return "Q6_K" if (is_value or is_down) and _deserves_more_bits(layer, n_layers) else base
    early = (is_value and layer < 4) or (is_down and layer < n_layers // 8)
    return "Q5_K" if early and base == "Q4_K" else base


def _deserves_more_bits(layer: int, n_layers: int) -> bool:
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2
