"""Mapped and copied weights, checked by hand on small architectures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.memory.need import is_repacked, tensor_bytes, weight_memory
from perfsuite.workload.catalog import find
from perfsuite.workload.tensors import TensorSpec, tensor_specs
from perfsuite.workload.weights import materialize, synthetic_weights

from ...catalogue_workloads import catalogue_weights

X86 = ("avx2",)
ARM = ("neon", "dotprod")

MATRIX = TensorSpec(name="blk.0.attn_q.weight", ne=(512, 64))


@pytest.mark.parametrize(
    ("type_name", "features", "expected"),
    [
        ("Q4_0", X86, True),
        ("Q4_0", (), False),
        ("Q8_0", X86, False),
        ("Q8_0", ARM, True),
        ("Q6_K", X86, False),
        ("Q6_K", ("neon", "matmul_int8"), True),
        ("Q2_K", X86, False),
        ("Q2_K", ("avx2", "avx512"), True),
    ],
)
def test_type_and_processor_decide(type_name: str, features: tuple[str, ...], *, expected: bool) -> None:
    assert is_repacked(MATRIX, type_name, features) is expected


def test_a_matrix_needs_a_multiple_of_rows() -> None:
    """AVX2 interleaves 8 rows of Q4_0, Arm 4."""
    twelve = TensorSpec(name="blk.0.attn_k.weight", ne=(512, 12))
    assert not is_repacked(twelve, "Q4_0", X86)
    assert is_repacked(twelve, "Q4_0", ARM)


@pytest.mark.parametrize(
    ("name", "ne", "expected"),
    [
        ("token_embd.weight", (512, 64), False),
        ("output.weight", (512, 64), True),
        ("blk.0.ffn_up_exps.weight", (512, 64, 4), True),
        ("blk.0.attn_k_b.weight", (512, 64, 4), False),
        ("blk.0.ffn_gate_inp_shexp.weight", (512,), False),
    ],
)
def test_only_matrices_of_products_are_copied(name: str, ne: tuple[int, ...], *, expected: bool) -> None:
    """Routed experts have three dimensions, other matrices two; embeddings are looked up."""
    assert is_repacked(TensorSpec(name=name, ne=ne), "Q4_0", X86) is expected


def test_what_is_not_copied_is_the_whole_of_the_file(tmp_path: Path) -> None:
    """The tensors span the file except its header."""
    weights = synthetic_weights(replace(find("smollm2-135m").with_layers(1), n_vocab=512), "q8_0", cache_dir=tmp_path)
    memory = weight_memory(weights, ("avx2",))
    size = materialize(weights, cache_dir=tmp_path).stat().st_size
    assert memory.repacked_bytes == 0
    assert memory.mapped_bytes == memory.file_bytes
    assert 0.98 * size < memory.file_bytes < size


def test_tied_embeddings_are_copied_as_the_output_matrix() -> None:
    """In Q4_0 the embeddings stay mapped and lie interleaved in the second buffer as well."""
    weights = catalogue_weights("smollm2-135m-q4_0")
    spec = tensor_specs(weights.architecture)[0]
    layers = [each for each in tensor_specs(weights.architecture) if each.name.startswith("blk.") and len(each.ne) > 1]
    expected = sum(tensor_bytes(each, "Q4_0") for each in (spec, *layers))
    memory = weight_memory(weights, ("avx2",))
    assert memory.repacked_bytes == expected
    assert memory.mapped_bytes == memory.file_bytes
    assert weight_memory(weights, ()).repacked_bytes == 0
    assert tensor_bytes(TensorSpec(name="x", ne=(512, 4)), "Q4_0") == 4 * 16 * 18


def test_a_copied_output_matrix_at_the_end_is_given_back() -> None:
    """Untied, the last tensor of the file is the output matrix, and the file stays mapped up to it only."""
    weights = catalogue_weights("deepseek-v2-lite-l3-q4_0")
    memory = weight_memory(weights, ("avx2",))
    output = tensor_specs(weights.architecture)[-1]
    assert output.name == "output.weight"
    assert memory.file_bytes - memory.mapped_bytes == tensor_bytes(output, weights.tensor_types[output.name])
