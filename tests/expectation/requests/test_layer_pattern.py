"""How layers repeat."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from perfsuite.expectation.requests.layer_pattern import layer_pattern
from perfsuite.workload.catalog import find, names
from perfsuite.workload.quantization import tensor_types


def types(name: str, quantization: str) -> Mapping[str, str]:
    """The types of an architecture's tensors."""
    return tensor_types(find(name), quantization)


def test_alike_layers_are_told_by_two_depths() -> None:
    """Of 32 alike layers one and two are enough; what the second adds repeats 31 times."""
    pattern = layer_pattern(find("llama-2-7b"), types("llama-2-7b", "q4_0"))
    assert pattern is not None
    assert (pattern.depths, pattern.n_repeats) == ((1, 2), 31)


def test_windowed_layers_repeat_in_pairs() -> None:
    """Every second layer has a window, so the depths differ by two and are even as all 26 are."""
    pattern = layer_pattern(find("gemma-2-2b"), types("gemma-2-2b", "f16"))
    assert pattern is not None
    assert (pattern.depths, pattern.n_repeats) == ((2, 4), 12)


def test_leading_dense_layers_are_before_the_pattern() -> None:
    """The first of 27 layers is dense, so the pattern begins behind it."""
    pattern = layer_pattern(find("deepseek-v2-lite"), types("deepseek-v2-lite", "q8_0"))
    assert pattern is not None
    assert (pattern.depths, pattern.n_repeats) == ((2, 3), 25)


def test_a_mixture_has_no_pattern() -> None:
    """Layers of different types are not alike."""
    assert layer_pattern(find("llama-2-7b"), types("llama-2-7b", "q4_k_m")) is None


def test_a_single_odd_tensor_breaks_the_pattern() -> None:
    """One tensor of one layer in another type is enough."""
    odd = {**types("llama-2-7b", "q4_0"), "blk.17.ffn_up.weight": "Q8_0"}
    assert layer_pattern(find("llama-2-7b"), odd) is None


@pytest.mark.parametrize("depth", [1, 2])
def test_few_layers_have_no_pattern(depth: int) -> None:
    """Where the pattern would take as many layers as there are, there is none."""
    architecture = find("llama-2-7b").with_layers(depth)
    assert layer_pattern(architecture, tensor_types(architecture, "q4_0")) is None


@pytest.mark.parametrize("name", names())
def test_depths_and_repeats_add_up(name: str) -> None:
    """The first depth and all repeats together are the depth of the architecture."""
    pattern = layer_pattern(find(name), types(name, "q8_0"))
    assert pattern is not None
    shallow, deeper = pattern.depths
    assert shallow + pattern.n_repeats * (deeper - shallow) == find(name).n_layers
