"""Projectors of vision models, synthetic ones and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from gguf import GGUFReader, GGUFWriter

from perfsuite.errors import GgufError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.projector import ENCODERS, find_projector
from perfsuite.workload.weights import Weights, materialize, synthetic_weights


@pytest.fixture
def text(tiny: Callable[..., Architecture], tmp_path: Path) -> Weights:
    """Return a text model of 256 values a token."""
    return synthetic_weights(tiny(n_layers=1), "q8_0", cache_dir=tmp_path)


#: Weights of the encoders as they are published: without the norm behind CLIP's last layer, which LLaVA does not have.
PUBLISHED = {"clip-vit-l14-336": 303_507_456 - 2 * 1024, "siglip-so400m-14-896": 416_866_032}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_an_encoder_has_the_published_number_of_weights(name: str) -> None:
    """What lies behind the encoder follows the text model, and is not counted."""
    shape = ENCODERS[name].shape(name, 2048)
    encoder = replace(shape, tensors=tuple(each for each in shape.tensors if each.name.startswith("v.")))
    assert encoder.n_parameters == PUBLISHED[name]


@pytest.mark.parametrize("name", ["tiny-clip", "tiny-siglip"])
def test_a_synthetic_projector_follows_its_text_model(text: Weights, tmp_path: Path, name: str) -> None:
    """It gives vectors as wide as the model's; kernels of the first convolution stay in half precision."""
    projector = find_projector(f"{name}-q8_0", text, cache_dir=tmp_path)
    assert projector.image_size == ENCODERS[name].image_size
    tensors = {each.name: each for each in GGUFReader(materialize(projector.weights, cache_dir=tmp_path)).tensors}
    last = tensors["mm.2.weight" if name == "tiny-clip" else "mm.input_projection.weight"]
    assert text.shape.n_embd in map(int, last.shape)
    types = {name: each.tensor_type.name for name, each in tensors.items()}
    assert (types["v.patch_embd.weight"], types["v.blk.0.ffn_up.weight"]) == ("F16", "Q8_0")
    assert types["v.position_embd.weight"] == "F32"


def test_a_file_says_the_size_of_its_image(text: Weights, tmp_path: Path) -> None:
    """It is taken from the metadata; where that has none, as of an image of any size, it is 512 pixels."""
    written = materialize(find_projector("tiny-clip-f16", text, cache_dir=tmp_path).weights, cache_dir=tmp_path)
    assert find_projector(str(written), text, cache_dir=tmp_path).image_size == 56
    path = _written(tmp_path / "any.gguf", "clip", has_vision_encoder=True)
    assert find_projector(str(path), text, cache_dir=tmp_path).image_size == 512


def _written(path: Path, architecture: str, **flags: bool) -> Path:
    writer = GGUFWriter(path, architecture)
    for name, value in flags.items():
        writer.add_bool(f"{architecture}.{name}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_what_encodes_no_image_is_refused(text: Weights, tmp_path: Path) -> None:
    model = materialize(text, cache_dir=tmp_path)
    audio = _written(tmp_path / "audio.gguf", "clip", has_audio_encoder=True)
    nothing = _written(tmp_path / "nothing.gguf", "clip", has_vision_encoder=False)
    expected = {
        str(model): "is a model of architecture 'llama', expected a projector, whose architecture is 'clip'",
        str(audio): "is a projector of audio, expected one of images",
        str(nothing): "has no encoder, expected one of images",
    }
    for named, message in expected.items():
        with pytest.raises(GgufError) as caught:
            find_projector(named, text, cache_dir=tmp_path)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
