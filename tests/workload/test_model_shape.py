from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.catalog import find_model, listed
from perfsuite.workload.model_shape import ModelShape, check_generates, read_spec


def _shape(name: str) -> ModelShape:
    return listed(name).shape(name)


@pytest.mark.parametrize(
    ("name", "pooling_type", "embeds"),
    [
        ("tiny-bert", None, True),
        ("tiny-t5encoder", None, True),
        ("tiny-t5", None, False),
        ("tiny-dream", None, False),
        ("tiny-qwen3", None, False),
        ("tiny-qwen3", 0, False),
        ("tiny-qwen3", 3, True),
    ],
)
def test_encoders_and_pooled_models_give_embeddings(name: str, pooling_type: int | None, *, embeds: bool) -> None:
    """An encoder does by its architecture, any other where its metadata pools; what generates is refused by no one."""
    shape = _shape(name)
    if pooling_type is not None:
        shape = replace(shape, metadata=(*shape.metadata, ("pooling_type", pooling_type)))
    assert shape.embeds == embeds
    if embeds:
        with pytest.raises(ArchitectureError, match=f"--model={name}: {name} gives embeddings and generates nothing"):
            check_generates(shape, f"--model={name}")
    else:
        check_generates(shape, f"--model={name}")


def test_a_shallower_model_has_the_first_layers() -> None:
    """What differs from layer to layer is cut with the layers, in tensors and in metadata."""
    shallow = _shape("lfm2-1.2b").with_layers(3)
    assert shallow.name == "lfm2-1.2b-l3"
    assert dict(shallow.metadata)["attention.head_count_kv"] == (0, 0, 8)
    assert "blk.2.attn_q.weight" in {each.name for each in shallow.tensors}
    assert not any(each.name.startswith("blk.3.") for each in shallow.tensors)


def test_only_equal_layers_can_become_more() -> None:
    """A model of equal layers can be deeper; one whose layers differ says how deep it is."""
    deep = _shape("smollm3-3b").with_layers(40)
    assert deep.integer("block_count") == deep.n_layers == 40
    assert {each.ne for each in deep.tensors if each.name in ("blk.0.ffn_up.weight", "blk.39.ffn_up.weight")} == {
        (2048, 11008)
    }
    with pytest.raises(ArchitectureError, match=r"lfm2-1.2b: a depth of 17 layers, but its 16 are not alike"):
        _shape("lfm2-1.2b").with_layers(17)


@pytest.mark.parametrize("name", ["gemma-3n-e2b", "tiny-t5"])
def test_tied_layers_stay(name: str) -> None:
    """Layers that share caches, or that are of an encoder and a decoder, cannot be cut."""
    model = find_model(name)
    assert isinstance(model, ModelShape)
    with pytest.raises(ArchitectureError, match="depend on one another, so it has only its own depth"):
        model.with_layers(1)


_TEXT = """
architecture = "gemma3"
wanted = ["output.weight"]

[metadata]
block_count = 2
embedding_length = 64
"attention.layer_norm_rms_epsilon" = 1e-6
"attention.sliding_window_pattern" = [true, false]

[tensors]
"blk.*.attn_q.weight" = [64, 64]
"""


def test_a_file_describes_a_model(tmp_path: Path) -> None:
    """Metadata, arrays included, and the list of tensors become a shape of the name that is asked for."""
    path = tmp_path / "own.toml"
    path.write_text(_TEXT)
    spec = read_spec(path)
    shape = spec.shape("own")
    assert (shape.name, shape.gguf_architecture, spec.wanted) == ("own", "gemma3", ("output.weight",))
    assert dict(shape.metadata)["attention.sliding_window_pattern"] == (True, False)
    assert [each.name for each in shape.tensors] == ["blk.0.attn_q.weight", "blk.1.attn_q.weight"]
