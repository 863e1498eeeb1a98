"""Projectors of vision models: what turns an image into embeddings of a text model, as a file or a synthetic one.

A file is llama.cpp's ``mmproj``. A synthetic one has the shape of a published vision encoder, and the width of the
text model that it is for: ``<encoder>-<quantization>``, such as ``clip-vit-l14-336-f16``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.errors import GgufError, meant
from perfsuite.workload.model_shape import MetadataValue, ModelShape
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.tensors import TensorSpec
from perfsuite.workload.weights import Weights, is_path, materialize, resolve, synthetic_weights

#: The value of ``general.architecture`` in the file of a projector.
_ARCHITECTURE = "clip"

#: Pixels of a side where a projector takes an image of any size and names none.
_USUAL_SIZE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Projector:
    """A projector, and the image that it is given."""

    weights: Weights
    #: Pixels of a side of the image, which is square.
    image_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionEncoder:
    """The dimensions of a vision transformer, and what llama.cpp calls the projector behind it."""

    projector_type: str
    n_layers: int
    n_embd: int
    n_heads: int
    n_ff: int
    patch_size: int
    image_size: int
    norm_eps: float
    #: Of the pixels, by colour.
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]

    @property
    def is_clip(self) -> bool:
        """Whether it is OpenAI's CLIP, in front of two matrices; else it is SigLIP, as Gemma 3 has it."""
        return self.projector_type == "mlp"

    @property
    def n_patches(self) -> int:
        return (self.image_size // self.patch_size) ** 2

    def shape(self, name: str, n_text: int) -> ModelShape:
        """Return what the file of a projector has for a text model of `n_text` values a token."""
        return ModelShape(
            name=name,
            gguf_architecture=_ARCHITECTURE,
            metadata=tuple(self._metadata(n_text)),
            tensors=tuple(self._tensors(n_text)),
        )

    def _metadata(self, n_text: int) -> Iterator[tuple[str, MetadataValue]]:
        yield "has_vision_encoder", True
        yield "projector_type", self.projector_type
        yield "use_gelu", not self.is_clip
        yield "vision.image_size", self.image_size
        yield "vision.patch_size", self.patch_size
        yield "vision.embedding_length", self.n_embd
        yield "vision.feed_forward_length", self.n_ff
        yield "vision.block_count", self.n_layers
        yield "vision.projection_dim", n_text
        yield "vision.attention.head_count", self.n_heads
        yield "vision.attention.layer_norm_epsilon", self.norm_eps
        yield "vision.image_mean", self.mean
        yield "vision.image_std", self.deviation

    def _tensors(self, n_text: int) -> Iterator[TensorSpec]:
        n_embd = self.n_embd
        yield TensorSpec(name="v.patch_embd.weight", ne=(self.patch_size, self.patch_size, 3, n_embd))
        yield TensorSpec(name="v.position_embd.weight", ne=(n_embd, self.n_patches + self.is_clip))
        if self.is_clip:
            yield TensorSpec(name="v.class_embd", ne=(n_embd,))
            yield from _norm("v.pre_ln", n_embd)
        else:
            yield TensorSpec(name="v.patch_embd.bias", ne=(n_embd,))
            yield from _norm("v.post_ln", n_embd)
        for layer in range(self.n_layers):
            yield from self._layer(f"v.blk.{layer}")
        if self.is_clip:
            yield from _linear("mm.0", n_embd, n_text)
            yield from _linear("mm.2", n_text, n_text)
        else:
            yield TensorSpec(name="mm.input_projection.weight", ne=(n_text, n_embd))
            yield TensorSpec(name="mm.soft_emb_norm.weight", ne=(n_embd,))

    def _layer(self, prefix: str) -> Iterator[TensorSpec]:
        for name in ("ln1", "ln2"):
            yield from _norm(f"{prefix}.{name}", self.n_embd)
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            yield from _linear(f"{prefix}.{name}", self.n_embd, self.n_embd)
        yield from _linear(f"{prefix}.ffn_up", self.n_embd, self.n_ff)
        yield from _linear(f"{prefix}.ffn_down", self.n_ff, self.n_embd)


def _linear(name: str, n_in: int, n_out: int) -> Iterator[TensorSpec]:
    yield TensorSpec(name=f"{name}.weight", ne=(n_in, n_out))
    yield TensorSpec(name=f"{name}.bias", ne=(n_out,))


def _norm(name: str, n_embd: int) -> Iterator[TensorSpec]:
    yield from (TensorSpec(name=f"{name}.{part}", ne=(n_embd,)) for part in ("weight", "bias"))


_CLIP = VisionEncoder(
    projector_type="mlp",
    n_layers=24,
    n_embd=1024,
    n_heads=16,
    n_ff=4096,
    patch_size=14,
    image_size=336,
    norm_eps=1e-5,
    mean=(0.48145466, 0.4578275, 0.40821073),
    deviation=(0.26862954, 0.26130258, 0.27577711),
)
_SIGLIP = VisionEncoder(
    projector_type="gemma3",
    n_layers=27,
    n_embd=1152,
    n_heads=16,
    n_ff=4304,
    patch_size=14,
    image_size=896,
    norm_eps=1e-6,
    mean=(0.5, 0.5, 0.5),
    deviation=(0.5, 0.5, 0.5),
)

#: The encoders by name. LLaVA-1.5 has the first, and takes what its last layer but one gives; Gemma 3 has the second.
#: *Source*: ``config.json`` and ``preprocessor_config.json`` of openai/clip-vit-large-patch14-336 and of
#: google/gemma-3-4b-it (``vision_config``).
ENCODERS = {
    "clip-vit-l14-336": _CLIP,
    "siglip-so400m-14-896": _SIGLIP,
    "tiny-clip": replace(_CLIP, n_layers=3, n_embd=64, n_heads=2, n_ff=128, image_size=56),
    "tiny-siglip": replace(_SIGLIP, n_layers=2, n_embd=64, n_heads=2, n_ff=128, image_size=112),
}


def find_projector(name_or_path: str, text: Weights, *, cache_dir: Path) -> Projector:
    """Find the projector of a text model by the path of its file, or by a name ``<encoder>-<quantization>``.

    Nothing is written. Raises GgufError: the file is missing, broken, or encodes no images, or the name is not known.
    """
    if not is_path(name_or_path):
        return _synthetic(name_or_path, text, cache_dir)
    weights = resolve(name_or_path, cache_dir=cache_dir)
    _check_file(name_or_path, weights)
    size = weights.shape.integer("vision.image_size", 0)
    return Projector(weights=weights, image_size=size or _USUAL_SIZE)


def _check_file(path: str, weights: Weights) -> None:
    if weights.gguf_architecture != _ARCHITECTURE:
        raise GgufError(
            f"--mmproj={path}: is a model of architecture {weights.gguf_architecture!r}, expected a projector, whose "
            f"architecture is {_ARCHITECTURE!r}; name the file called mmproj beside the model"
        )
    metadata = dict(weights.shape.metadata)
    if metadata.get("has_vision_encoder") is True:
        return
    seen = "is a projector of audio" if metadata.get("has_audio_encoder") is True else "has no encoder"
    raise GgufError(f"--mmproj={path}: {seen}, expected one of images (clip.has_vision_encoder)")


def _synthetic(name: str, text: Weights, cache_dir: Path) -> Projector:
    base, _, quantization = name.rpartition("-")
    encoder = ENCODERS.get(base)
    if encoder is None or quantization not in quantizations():
        names = [f"{each}-f16" for each in ENCODERS]
        known = ", ".join(names) + meant(name, names)
        raise GgufError(
            f"--mmproj={name}: is neither a path nor a name of the catalogue; expected FILE.gguf or {known}"
        )
    shape = encoder.shape(base, text.shape.n_embd)
    weights = synthetic_weights(shape, quantization, cache_dir=cache_dir)
    return Projector(weights=weights, image_size=encoder.image_size)


def projector_file(projector: Projector, *, cache_dir: Path) -> Weights:
    """Return a projector's weights as a file like any other: a board knows no synthetic ones by their name.

    Raises GgufError: the file is missing, or cannot be written.
    """
    path = materialize(projector.weights, cache_dir=cache_dir)
    return replace(projector.weights, quantization=None, path=path)
