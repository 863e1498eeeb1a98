from __future__ import annotations

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.catalog import entry, find, names

# Published to two or three digits only: the papers of Fox-1 (1.6 billion, rounded down) and PLM (1.8 billion).
_ROUNDED = {"fox-1-1.6b": 1.6e9, "plm-1.8b": 1.8e9}


@pytest.mark.parametrize("name", names())
def test_parameters_match_the_published_count(name: str) -> None:
    """The tensors of each architecture add up to its published number of parameters."""
    found = entry(name)
    if found.published_parameters is None:
        rounded = _ROUNDED[name]
        assert rounded <= found.architecture.n_parameters < rounded + 0.1e9
    else:
        assert found.architecture.n_parameters == found.published_parameters


@pytest.mark.parametrize("name", names())
def test_every_entry_names_its_source(name: str) -> None:
    """Each entry cites the config.json that it was taken from, and carries its own name."""
    found = entry(name)
    assert found.source.startswith("https://huggingface.co/")
    assert found.source.endswith("/config.json")
    assert found.architecture.name == name


def test_promised_architectures_are_there() -> None:
    """The catalogue covers the models of the four bodies of work."""
    promised = """smollm2-135m smollm2-360m smollm2-1.7b llama-3.2-1b llama-3.2-3b llama-2-7b qwen2.5-0.5b qwen2.5-1.5b
        qwen3-0.6b qwen3-14b qwen3-32b gemma-2-2b pythia-70m pythia-160m pythia-410m pythia-1b pythia-1.4b
        tinyllama-1.1b plm-1.8b qwen1.5-0.5b qwen1.5-1.8b qwen1.5-moe-a2.7b deepseek-v2-lite
        deepseek-r1-distill-qwen-1.5b fox-1-1.6b phi-4-mini"""
    assert set(promised.split()) <= set(names())


def test_a_near_miss_is_helped() -> None:
    """A misspelt name is refused with the closest ones."""
    with pytest.raises(ArchitectureError, match=r"'smolm2-135m' is not in the catalogue; did you mean smollm2-135m"):
        find("smolm2-135m")


def test_a_far_miss_lists_all() -> None:
    """A name like none of the catalogue is refused with all of them."""
    with pytest.raises(ArchitectureError, match=r"which has deepseek-r1-distill-qwen-1\.5b, .*tinyllama-1\.1b"):
        find("#")
