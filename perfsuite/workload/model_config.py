"""What a Hugging Face ``config.json`` says of the model of text in it: its class, its keys, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perfsuite.errors import ArchitectureError
from perfsuite.records.codec import plain_json, shown
from perfsuite.workload.config_classes import GGUF_ARCHITECTURES, UNREAD

#: Under which of these a config of several models has that of text; the last one within another.
_TEXT = ("text_config", "llm_config", "language_config", "thinker_config")

#: What a nested config may leave out, by its ``model_type``. *Source*: ``configuration_*.py`` of transformers 4.57.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gemma3_text": {
        "vocab_size": 262208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
    },
    "llama": {
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "rms_norm_eps": 1e-6,
    },
    "mistral": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-6,
    },
}

#: Names of RoPE's base and of the turned part of a head, beside those in ``rope_parameters``.
_BASES = ("global_rope_theta", "rope_theta", "rotary_emb_base", "rope_freq_constant")
_PARTS = ("partial_rotary_factor", "rotary_pct", "rope_pct", "rope_percent", "rotary_emb_fraction")

_OTHER_PARTS = ("vision", "visual", "audio", "sound", "speech", "whisper", "talker", "projector", "vit")
_FURTHER_TOKENS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A config of a class that is read."""

    #: The path, or what it is called in errors.
    where: str
    class_name: str
    #: Of a config of several models, the keys of the whole and over them those of the model of text.
    values: Mapping[str, Any]

    @property
    def left_out(self) -> Iterator[str]:
        """What is in the config and not in the model that is made of it, in words."""
        others = [
            key for key, value in self.values.items() if isinstance(value, Mapping) and key.startswith(_OTHER_PARTS)
        ]
        if others:
            yield f"{', '.join(others)}: only the model of text is read"
        for key in _FURTHER_TOKENS:
            if self.values.get(key):
                yield f"{key}: the layers that predict further tokens are left out"
        rows, per_layer = (self.values.get(key) for key in ("vocab_size", "vocab_size_per_layer_input"))
        if rows != per_layer and per_layer:
            yield f"vocab_size is {rows}: tokens of images and sound are left out, {per_layer} are those of text"
        quantization = self.values.get("quantization_config")
        if isinstance(quantization, Mapping):
            method = quantization.get("quant_method")
            yield f"quantization_config: it is published as {shown(method)}; here its weights are of the type asked for"


def read_config(config: Mapping[str, Any] | Path) -> ModelConfig:
    """Read a config, given as a mapping or as the path of a ``config.json``.

    Raises ArchitectureError where it names no class that llama.cpp converts, or one of whose keys not all are read.
    """
    where = str(config) if isinstance(config, Path) else "config"
    whole = _load(config) if isinstance(config, Path) else config
    text = _text_part(whole)
    class_name = _class_name(text) if _class_name(text) in GGUF_ARCHITECTURES else _class_name(whole)
    if class_name is None:
        raise ArchitectureError(f"{where}: key 'architectures' is missing; name the config.json of a model")
    if class_name not in GGUF_ARCHITECTURES:
        raise ArchitectureError(f"{where}: architecture {shown(class_name)} is none that llama.cpp converts")
    if unread := UNREAD.get(GGUF_ARCHITECTURES[class_name]):
        keys = [key for key in unread.split() if key in {**whole, **text}] or unread.split()
        raise ArchitectureError(
            f"{where}: {class_name} is not read, of which {', '.join(keys)} {'shape' if keys[1:] else 'shapes'} the "
            "model; give its GGUF, or its metadata as TOML (see 'perfsuite synthesize --help')"
        )
    defaults = _DEFAULTS.get(str(text.get("model_type")), {}) if text is not whole else {}
    return ModelConfig(where=where, class_name=class_name, values=MappingProxyType({**defaults, **whole, **text}))


def missing_key(where: str, key: str, class_name: str) -> ArchitectureError:
    """Return the error of a key that a class needs."""
    return ArchitectureError(f"{where}: key {key!r} is missing, which {class_name} needs; add it")


def rope_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return how positions are turned, by newer transformers' names, whatever a config calls it."""
    found = {**(values.get("rope_scaling") or {}), **(values.get("rope_parameters") or {})}
    found |= found.get("full_attention", {})
    found.setdefault("rope_type", found.get("type"))
    for name, keys in (("rope_theta", _BASES), ("partial_rotary_factor", _PARTS)):
        given = (each[key] for each in (found, values) for key in keys if each.get(key) is not None)
        found[name] = next(given, None)
    return found


def _load(path: Path) -> Mapping[str, Any]:
    # some configs have infinities, of what is not read here
    values = plain_json(path, ArchitectureError, "name the config.json of a model", allows_nan=True)
    if not isinstance(values, Mapping):
        raise ArchitectureError(f"{path}: holds a {type(values).__name__}, expected an object")
    return values


def _text_part(whole: Mapping[str, Any]) -> Mapping[str, Any]:
    part = next((whole[key] for key in _TEXT if isinstance(whole.get(key), Mapping)), None)
    return whole if part is None else _text_part(part)


def _class_name(values: Mapping[str, Any]) -> str | None:
    named = values.get("architectures")
    return str(named[0]) if isinstance(named, list | tuple) and named else None
