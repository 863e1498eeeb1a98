from __future__ import annotations

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import described, find, find_model, listed, listed_names, names
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.model_shape import ModelShape
from perfsuite.workload.quantization import tensor_types
from perfsuite.workload.tensors import tensor_specs

# Published to two or three digits only: the papers of Fox-1 (1.6 billion, rounded down) and PLM (1.8 billion).
_ROUNDED = {"fox-1-1.6b": 1.6e9, "plm-1.8b": 1.8e9}

# Made for comparing kinds of attention at two sizes; nobody published them.
_KINDS = ("gqa", "mha", "mla", "mla-absorbed")
_SWEEPS = {size: tuple(f"attention-{kind}-{size}" for kind in _KINDS) for size in ("135m", "1.5b")}
_OWN = {name for sweep in _SWEEPS.values() for name in sweep}


@pytest.mark.parametrize("name", names())
def test_every_entry_names_its_source(name: str) -> None:
    """The config.json that it was taken from, and whose parameters it has; what nobody published has no count."""
    architecture, told = find(name), described(name)
    published = told.get("published_parameters")
    assert architecture.name == name
    if name in _OWN:
        assert told["source"].startswith("perfsuite: ")
        assert published is None
        return
    assert told["source"].startswith("https://huggingface.co/")
    assert told["source"].endswith("/config.json")
    if name in _ROUNDED:
        assert published is None
        assert _ROUNDED[name] <= architecture.n_parameters < _ROUNDED[name] + 0.1e9
    else:
        assert architecture.n_parameters == published


@pytest.mark.parametrize("sweep", _SWEEPS.values(), ids=_SWEEPS)
def test_kinds_of_attention_are_compared_at_equal_size(sweep: tuple[str, ...]) -> None:
    """Parameters differ by less than 1 % from the grouped one; width, depth, vocabulary and query heads are equal."""
    found = [find(name) for name in sweep]
    assert all(abs(each.n_parameters / found[0].n_parameters - 1) < 0.01 for each in found)
    assert len({(each.n_embd, each.n_layers, each.n_vocab, each.n_heads, each.v_head_dim) for each in found}) == 1
    gqa, mha, mla, absorbed = found
    assert gqa.n_kv_heads < gqa.n_heads == mha.n_kv_heads
    assert (gqa.mla, mha.mla) == (None, None)
    assert mla.mla is not None
    assert absorbed.mla is not None
    assert (mla.mla.absorbed, absorbed.mla.absorbed) == (False, True)
    assert absorbed.moe is not None
    assert absorbed.moe.n_dense_layers == absorbed.n_layers


@pytest.mark.parametrize("quantization", ["f16", "q8_0", "q4_k_m"])
@pytest.mark.parametrize("name", sorted(_OWN))
def test_own_architectures_have_every_precision(name: str, quantization: str) -> None:
    """Every row fits its type's blocks; in Q4_K_M rows that are no multiple of 256 fall back as in SmolLM2-135M."""
    architecture = find(name)
    types = tensor_types(architecture, quantization)
    matrices = [spec for spec in tensor_specs(architecture) if len(spec.ne) > 1]
    assert all(GGML_TYPES[types[spec.name]].fits(spec.ne[0]) for spec in matrices)
    found = {types[spec.name] for spec in matrices}
    if quantization != "q4_k_m":
        assert found == {quantization.upper()}
    elif name.endswith("135m"):
        assert found == set(tensor_types(find("smollm2-135m"), "q4_k_m").values()) - {"F32"}
    else:  # what is absorbed is a matrix for each head, of rows of 128
        assert found - {"Q5_0"} == {"Q4_K", "Q6_K"}
        assert ("Q5_0" in found) is ("absorbed" in name)


def test_promised_architectures_are_there() -> None:
    promised = """smollm2-135m smollm2-360m smollm2-1.7b llama-3.2-1b llama-3.2-3b llama-2-7b qwen2.5-0.5b qwen2.5-1.5b
        qwen3-0.6b qwen3-14b qwen3-32b gemma-2-2b pythia-70m pythia-160m pythia-410m pythia-1b pythia-1.4b
        tinyllama-1.1b plm-1.8b qwen1.5-0.5b qwen1.5-1.8b qwen1.5-moe-a2.7b deepseek-v2-lite
        deepseek-r1-distill-qwen-1.5b fox-1-1.6b phi-4-mini"""
    assert set(promised.split()) <= set(names())


@pytest.mark.parametrize("name", listed_names())
def test_listed_tensors_match_the_published_count(name: str) -> None:
    """The listed tensors add up to the published number of parameters; where they do not, the file says why."""
    found = listed(name)
    is_published = found.shape(name).n_parameters == found.published_parameters
    assert is_published is not bool(found.deviation)
    assert found.source.startswith("https://huggingface.co/")
    assert found.source.endswith("/config.json")


def test_a_listed_model_is_a_shape() -> None:
    assert isinstance(find_model("gpt-oss-20b"), ModelShape)
    assert isinstance(find_model("smollm2-135m"), Architecture)
    with pytest.raises(ArchitectureError, match=r"'gpt-oss-20b' can be measured, but the suite cannot count its work"):
        find("gpt-oss-20b")
    with pytest.raises(ArchitectureError, match=r"did you mean .*gpt-oss-20b"):
        find_model("gpt-oss-20")
