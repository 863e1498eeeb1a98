from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.model_tensors import ask_for_tensors, with_engine_tensors
from perfsuite.workload.catalog import find, find_model, listed, listed_names, tiny_names
from perfsuite.workload.config_metadata import spec_of_config
from perfsuite.workload.model_shape import ModelShape, ModelSpec, shape_of
from perfsuite.workload.tensors import kind_of

#: Models that the engine builds a graph of only beside another one.
_DRAFTS = ("tiny-eagle3",)

#: One of each kind: plain, experts, both in turn, latent attention, state spaces, an encoder, a recurrent network.
_SOME = ("smollm3-3b", "gpt-oss-20b", "granite-4.0-h-tiny", "minicpm3-4b", "bge-small-en-v1.5", "tiny-t5", "rwkv7-1.5b")


def _shape(name: str) -> ModelShape:
    model = find_model(name)
    assert isinstance(model, ModelShape)
    return model


def _some_first(some: Sequence[str], names: Sequence[str]) -> list[Any]:
    """Return some names, and the others as long tests."""
    return [*some, *(pytest.param(name, marks=pytest.mark.long) for name in names if name not in some)]


@pytest.mark.long_but_first
@pytest.mark.parametrize("name", _some_first(_SOME, (*listed_names(), *tiny_names())))
def test_the_list_is_the_engines(name: str, engine_cache: Path) -> None:
    """Tensor by tensor, a model of the catalogue is what the engine wants of its metadata, and its graph builds."""
    spec, shape = listed(name), _shape(name)
    bare = replace(shape, tensors=())
    asked = ask_for_tensors(bare, cache_dir=engine_cache, wanted=spec.wanted, unwanted=spec.unwanted)
    assert set(asked.tensors) == set(shape.tensors)
    assert asked.is_built is (name not in _DRAFTS)


@pytest.mark.parametrize(
    "name", _some_first(("lfm2-1.2b", "deepseek-v3"), [each for each in listed_names() if each != "gemma-3n-e2b"])
)
def test_a_cut_model_is_the_engines(name: str, engine_cache: Path) -> None:
    """Each model of the catalogue whose layers do not share caches can be cut to its first four."""
    spec, cut = listed(name), _shape(name).with_layers(4)
    asked = ask_for_tensors(cut, cache_dir=engine_cache, wanted=spec.wanted, unwanted=spec.unwanted)
    assert set(asked.tensors) == set(cut.tensors)
    assert asked.is_built


@pytest.mark.parametrize("name", ["smollm2-135m", "pythia-70m", "gemma-2-2b"])
def test_the_families_have_the_engines_tensors(name: str, engine_cache: Path) -> None:
    shape = shape_of(find(name).with_layers(2))
    assert set(with_engine_tensors(shape, cache_dir=engine_cache).tensors) == set(shape.tensors)


#: Published counts, some with and some without what only training needs, such as biases of routers: 1 in a million.
_TOLERANCE = 1e-6
_FIELD = Path(__file__).parents[1] / "data" / "field"
_PUBLISHED: dict[str, dict[str, Any]] = json.loads((_FIELD / "published.json").read_text(encoding="utf-8"))


@pytest.mark.long_but_first
@pytest.mark.parametrize("name", _PUBLISHED)
def test_a_config_has_the_published_number_of_parameters(name: str, engine_cache: Path) -> None:
    """The engine's tensors of a config, by its class's own keys, add up to what is published, or generally known."""
    found = _PUBLISHED[name]
    spec = spec_of_config(found["config"] or _FIELD / f"{name}.json")
    assert isinstance(spec, ModelSpec)
    shape = with_engine_tensors(spec.shape(name), cache_dir=engine_cache, wanted=spec.wanted)
    assert shape.n_parameters == pytest.approx(found["parameters"], rel=_TOLERANCE)


def test_optional_tensors_are_there_where_they_are_wanted(engine_cache: Path) -> None:
    """A kind that a file may lack is left out unless it is wanted, and named among what is left out."""
    shape = _shape("tiny-gemma3")
    plain = ask_for_tensors(shape, cache_dir=engine_cache)
    assert {"output.weight", "blk.*.attn_q.bias"} <= {kind_of(each.name) for each in plain.left_out}
    wanted = with_engine_tensors(shape, cache_dir=engine_cache, wanted=["output.weight", "attn_q.bias"])
    more = {kind_of(each.name) for each in wanted.tensors} - {kind_of(each.name) for each in plain.tensors}
    assert more == {"output.weight", "blk.*.attn_q.bias"}


def test_missing_metadata_is_named_in_the_engines_words(engine_cache: Path) -> None:
    """Metadata that makes no model ends in the engine's complaint, and not in a crash."""
    shape = replace(_shape("tiny-gemma3"), metadata=(("vocab_size", 384), ("block_count", 1)))
    with pytest.raises(MeasurementError, match=r"key not found in model: gemma3\.context_length"):
        ask_for_tensors(shape, cache_dir=engine_cache)
