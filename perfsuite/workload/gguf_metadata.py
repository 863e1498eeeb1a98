"""Architectures and tensor types from GGUF files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perfsuite.errors import ArchitectureError, GgufError
from perfsuite.workload.architecture import MOST_LAYERS, MOST_POSITIONS, Architecture, LatentAttention, MixtureOfExperts
from perfsuite.workload.families import FAMILIES, Family
from perfsuite.workload.gguf_header import GgufHeader, joining, read_header
from perfsuite.workload.model_shape import ModelShape, shape_of_file
from perfsuite.workload.tensors import tensor_specs

#: Tensors that a text model may have beside those that the suite computes with, and the parts of another model that a
#: file of several has. *Source*: ``llama_model_base::load_tensors`` and ``tools/mtmd/clip-impl.h`` of llama.cpp.
_OPTIONAL = re.compile(
    r"rope_(freqs|factors_long|factors_short)\.weight|output\.bias|blk\.\d+\.(exp_probs_b|nextn|attn_rot_embd)\..*"
)
_OF_ANOTHER = re.compile(r"(v|a|mm|mmproj|resampler)\..*")
_PROJECTOR = "clip"
_MOST_NAMED = 5
_LAYER = re.compile(r"blk\.(\d{1,9})\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufModel:
    """What a GGUF file holds, without its weights."""

    path: Path
    size_bytes: int
    #: The value of ``general.architecture``.
    gguf_architecture: str
    #: None where it is of no family that is known.
    known_architecture: Architecture | None
    shape: ModelShape
    #: Tensor name to upper-case ggml type name, read-only.
    tensor_types: Mapping[str, str]

    @property
    def architecture(self) -> Architecture:
        """The architecture; a GgufError where it is of no family that is known."""
        if self.known_architecture is None:
            raise unknown_architecture(str(self.path), self.gguf_architecture)
        return self.known_architecture


def unknown_architecture(where: str, name: str) -> GgufError:
    """Return the error of what needs to know an architecture that is of no family that is known."""
    return GgufError(
        f"{where}: architecture {name!r} is not supported; supported are {', '.join(FAMILIES)}; "
        "'pytest --device=host --model' measures any that the engine runs"
    )


def read_gguf(path: Path) -> GgufModel:
    """Describe a GGUF file; one that is missing, broken, split, or contradicts its architecture raises GgufError."""
    header = read_header(path)
    name = _architecture_name(path, header)
    _check_limits(path, header, name)
    if name != _PROJECTOR:
        _refuse(path, header, name, [each for each in _names(header) if _OF_ANOTHER.fullmatch(each)])
    return GgufModel(
        path=path,
        size_bytes=header.size_bytes,
        gguf_architecture=name,
        known_architecture=_architecture(path, header, name) if name in FAMILIES else None,
        shape=shape_of_file(path.stem, name, header.metadata, tuple(each.spec for each in header.tensors)),
        tensor_types=MappingProxyType({each.spec.name: each.ggml_type.name for each in header.tensors}),
    )


def _architecture(path: Path, header: GgufHeader, name: str) -> Architecture:
    try:
        architecture = _Metadata(path=path, header=header, prefix=name).architecture()
    except ArchitectureError as error:
        raise GgufError(f"{path}: {error}") from error
    _check_tensors(path, header, architecture)
    return architecture


def _architecture_name(path: Path, header: GgufHeader) -> str:
    name = header.metadata.get("general.architecture")
    if not isinstance(name, str):
        raise GgufError(f"{path}: metadata lacks general.architecture")
    n_parts = header.metadata.get("split.count", 0)
    if isinstance(n_parts, int) and n_parts > 1:
        todo = joining(path, otherwise="merge them with llama-gguf-split --merge")
        raise GgufError(f"{path}: is split in {n_parts} parts; {todo}")
    return name


def _check_limits(path: Path, header: GgufHeader, name: str) -> None:
    """Refuse more layers or tokens than any engine runs, and tensors of layers that the metadata has not."""
    n_ctx = header.metadata.get(f"{name}.context_length")
    if isinstance(n_ctx, int) and n_ctx > MOST_POSITIONS:
        raise GgufError(f"{path}: {name}.context_length is {n_ctx}, expected at most {MOST_POSITIONS}")
    n_layers = header.metadata.get(f"{name}.block_count")
    if not isinstance(n_layers, int):
        return
    if not 1 <= n_layers <= MOST_LAYERS:
        raise GgufError(f"{path}: {name}.block_count is {n_layers}, expected 1 to {MOST_LAYERS}")
    for tensor in header.tensors:
        layer = _LAYER.match(tensor.spec.name)
        if layer and int(layer[1]) >= n_layers:
            raise GgufError(f"{path}: has tensor {tensor.spec.name!r}, its metadata says {n_layers} layers")


def _check_tensors(path: Path, header: GgufHeader, architecture: Architecture) -> None:
    found = {each.spec.name: each.spec for each in header.tensors}
    for expected in tensor_specs(architecture):
        seen = found.get(expected.name)
        if seen is None:
            raise GgufError(f"{path}: lacks tensor {expected.name!r}, which its metadata demands")
        if seen.ne != expected.ne:
            raise GgufError(f"{path}: tensor {expected.name!r} is {seen.ne}, its metadata demands {expected.ne}")

    known = {each.name.rpartition(".")[0] for each in tensor_specs(architecture)}
    others = (each for each in _names(header) if each.rpartition(".")[0] not in known)
    _refuse(path, header, architecture.gguf_architecture, [each for each in others if not _OPTIONAL.fullmatch(each)])


def _names(header: GgufHeader) -> list[str]:
    return [each.spec.name for each in header.tensors]


def _refuse(path: Path, header: GgufHeader, name: str, strangers: Sequence[str]) -> None:
    """Refuse tensors that an architecture has no place for, as llama.cpp does, which only counts them."""
    if strangers:
        listed = ", ".join(strangers[:_MOST_NAMED]) + (", ..." if len(strangers) > _MOST_NAMED else "")
        raise GgufError(
            f"{path}: {len(strangers)} of its {len(header.tensors)} tensors have no place in {name} ({listed}); "
            "convert it again, and a part that sees or hears into a file of its own"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    """A header's hyperparameters with checked access."""

    path: Path
    header: GgufHeader
    prefix: str

    def architecture(self) -> Architecture:
        family = FAMILIES[self.prefix]
        shapes = {each.spec.name: each.spec.ne for each in self.header.tensors}
        n_embd, n_heads = self._integer("embedding_length"), self._integer("attention.head_count")
        head_dim = self._integer("attention.key_length", n_embd // max(n_heads, 1))
        fields: dict[str, Any] = {
            "name": self.path.stem,
            "gguf_architecture": self.prefix,
            "n_layers": self._integer("block_count"),
            "n_embd": n_embd,
            "n_heads": n_heads,
            "n_kv_heads": self._integer("attention.head_count_kv", n_heads),
            "head_dim": head_dim,
            "v_head_dim": self._integer("attention.value_length", head_dim),
            "n_ff": self._integer("feed_forward_length"),
            "n_vocab": shapes.get("token_embd.weight", (0, 0))[-1],
            "n_ctx_train": self._integer("context_length"),
            "tied_embeddings": "output.weight" not in shapes,
            "qkv_bias": "blk.0.attn_q.bias" in shapes or "blk.0.attn_qkv.bias" in shapes,
            "qk_norm": family.qk_norm,
            "fused_qkv": "blk.0.attn_qkv.weight" in shapes,
            "n_rot": self._integer("rope.dimension_count", head_dim),
            "rope_freq_base": self._number("rope.freq_base", 10000.0),
            "rope_freq_factors": family.rope_factors[0] in shapes,
            "n_ctx_orig": self._optional_integer("rope.scaling.original_context_length"),
            **self._family_fields(family),
            **self._latent_attention(family, absorbed="blk.0.attn_k_b.weight" in shapes),
            "moe": self._experts(family) if family.experts else None,
        }
        return Architecture(**fields)

    def _family_fields(self, family: Family) -> dict[str, Any]:
        norm = "layer_norm_epsilon" if family.layer_norm_with_bias else "layer_norm_rms_epsilon"
        fields: dict[str, Any] = {"norm_eps": self._number(f"attention.{norm}")}
        if family.parallel_option:
            fields["parallel_residual"] = bool(self._integer("use_parallel_residual", 1))
        if family.window_caches:
            fields["sliding_window"] = self._integer("attention.sliding_window", 4096)
        if family.soft_caps:
            fields["attn_logit_softcap"] = self._number("attn_logit_softcapping", 50.0)
            fields["final_logit_softcap"] = self._number("final_logit_softcapping", 30.0)
        return fields

    def _experts(self, family: Family) -> MixtureOfExperts:
        n_ff_expert = self._integer("expert_feed_forward_length")
        if family.gated_shared_expert:
            n_ff_shared = self._integer("expert_shared_feed_forward_length")
        else:
            n_ff_shared = n_ff_expert * self._integer("expert_shared_count")
        return MixtureOfExperts(
            n_experts=self._integer("expert_count"),
            n_experts_used=self._integer("expert_used_count"),
            n_ff_expert=n_ff_expert,
            n_ff_shared=n_ff_shared,
            n_dense_layers=self._integer("leading_dense_block_count", 0),
            normalize_weights=bool(self._integer("expert_weights_norm", 0)),
            weights_scale=self._number("expert_weights_scale", 1.0),
        )

    def _latent_attention(self, family: Family, *, absorbed: bool) -> dict[str, Any]:
        if not family.latent_attention:
            return {}
        suffix = "_mla" if absorbed else ""
        head_dim, v_head_dim = (self._integer(f"attention.{part}_length{suffix}") for part in ("key", "value"))
        n_rot = self._integer("rope.dimension_count")
        latent = LatentAttention(
            q_lora_rank=self._integer("attention.q_lora_rank", 0) or None,
            kv_lora_rank=self._integer("attention.kv_lora_rank"),
            qk_nope_head_dim=head_dim - n_rot,
            qk_rope_head_dim=n_rot,
            v_head_dim=v_head_dim,
            absorbed=absorbed,
        )
        return {"head_dim": head_dim, "v_head_dim": v_head_dim, "mla": latent}

    def _integer(self, key: str, default: int | None = None) -> int:
        value = self._value(key, default)
        if not isinstance(value, int):
            raise GgufError(f"{self.path}: {self.prefix}.{key} is {value!r}, expected an integer")
        return value

    def _optional_integer(self, key: str) -> int | None:
        return self._integer(key) if f"{self.prefix}.{key}" in self.header.metadata else None

    def _number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if not isinstance(value, (int, float)):
            raise GgufError(f"{self.path}: {self.prefix}.{key} is {value!r}, expected a number")
        return float(f"{value:.7g}")  # the file has single precision: 1e-05 and not 9.999999747e-06

    def _value(self, key: str, default: object) -> object:
        full_key = f"{self.prefix}.{key}"
        if full_key in self.header.metadata:
            value = self.header.metadata[full_key]
            return "an array" if value is None else value
        if default is None:
            raise GgufError(f"{self.path}: metadata lacks {full_key}")
        return default
