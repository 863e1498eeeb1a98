from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, find_model, listed
from perfsuite.workload.model_shape import ModelShape, check_generates, full_key, shape_of
from perfsuite.workload.tensors import tensor_specs


def _shape(name: str) -> ModelShape:
    return listed(name).shape(name)


def test_an_architecture_has_a_shape() -> None:
    architecture = find("qwen3-0.6b")
    shape = shape_of(architecture)
    assert shape.tensors == tensor_specs(architecture)
    assert (shape.n_layers, shape.n_embd, shape.n_vocab) == (28, 1024, 151936)
    assert (shape.n_parameters, shape.tied_embeddings) == (architecture.n_parameters, True)
    assert shape_of(shape) is shape


def test_general_keys_have_no_prefix() -> None:
    """A key of the tokenizer is the file's own, and all others begin with the architecture."""
    shape = _shape("bge-small-en-v1.5")
    assert full_key(shape, "tokenizer.ggml.token_type_count") == "tokenizer.ggml.token_type_count"
    assert full_key(shape, "block_count") == "bert.block_count"


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


def test_a_missing_dimension_is_named() -> None:
    shape = replace(_shape("smollm3-3b"), metadata=())
    with pytest.raises(ArchitectureError, match=r"smollm3.block_count is None, expected an integer"):
        _ = shape.n_layers


def test_cut_leading_layers_are_not_more_than_all() -> None:
    one = _shape("deepseek-v3").with_layers(1)
    assert one.integer("leading_dense_block_count") == 1
    assert isinstance(find("deepseek-v2-lite"), Architecture)
