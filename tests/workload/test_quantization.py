from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find
from perfsuite.workload.families import FAMILIES
from perfsuite.workload.ggml_types import GGML_TYPES, GGML_TYPES_BY_NUMBER, is_quantized
from perfsuite.workload.gguf_metadata import read_gguf
from perfsuite.workload.quantization import quantizations, tensor_type, tensor_types
from perfsuite.workload.synthetic import write_synthetic
from perfsuite.workload.tensors import TensorSpec


def test_block_sizes_agree_with_the_gguf_package() -> None:
    """Numbers and block sizes of weights are those of the gguf package, for every type that it knows."""
    for number, sizes in gguf.GGML_QUANT_SIZES.items():
        found = GGML_TYPES[number.name]
        assert found is GGML_TYPES_BY_NUMBER[number.value]
        assert (found.block_values, found.block_bytes) == sizes or not found.is_weight
        assert is_quantized(number.name) is is_quantized(number.name.lower()) is (sizes[0] > 1)
    assert not is_quantized("dance")


# llama.h's file types. The engine's Q4_0 is no 'pure' one unless asked.
_MIXTURES = {"q4_k_s": 14, "q4_k_m": 15, "q5_k_s": 16, "q5_k_m": 17}
_PURE = {"q4_0": 2, "q8_0": 7, "q4_k": 15, "q6_k": 18, "q3_k": 12, "tq2_0": 37, "iq4_xs": 30, "f16": 1, "bf16": 32}


@pytest.mark.parametrize("gguf_architecture", FAMILIES)
def test_small_tensors_stay_single_precision(tiny: Callable[..., Architecture], gguf_architecture: str) -> None:
    """Norms, biases, RoPE factors and routers are F32 whatever the quantisation."""
    types = tensor_types(tiny(gguf_architecture), "q4_0")
    small = [name for name in types if "norm" in name or name.endswith("bias") or "rope" in name or "gate_inp" in name]
    assert small
    assert {types[name] for name in small} == {"F32"}


@given(
    st.sampled_from(quantizations()),
    st.integers(1, 2048),
    st.sampled_from(["blk.0.ffn_down", "output", "blk.1.attn_v"]),
)
def test_a_type_always_fits_its_rows(quantization: str, n_values: int, name: str) -> None:
    spec = TensorSpec(name=f"{name}.weight", ne=(n_values, 64))
    chosen = tensor_type(quantization, spec, find("smollm2-135m"))
    assert GGML_TYPES[chosen].fits(n_values)


def test_a_published_mixture() -> None:
    """Q4_K_M of Llama-3.2-1B has the counts of types that its published files have."""
    types = list(tensor_types(find("llama-3.2-1b"), "q4_k_m").values())
    assert {kind: types.count(kind) for kind in set(types)} == {"F32": 34, "Q4_K": 96, "Q6_K": 17}


# One odd width: 288 is a multiple of 32 but not of 256, and 272 of neither.
_SHAPES = [("llama", {}), ("llama", {"tied_embeddings": False, "n_ff": 272}), ("llama", {"n_embd": 288})]
_SHAPES += [(name, {}) for name in FAMILIES if name != "llama"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("gguf_architecture", "changes"),
    [_SHAPES[0], *(pytest.param(*each, marks=pytest.mark.long) for each in _SHAPES[1:])],
)
def test_types_are_those_of_the_engines_quantizer(
    tiny: Callable[..., Architecture],
    quantize_with_engine: Callable[[list[tuple[str, str, int, bool]]], None],
    tmp_path: Path,
    gguf_architecture: str,
    changes: dict[str, int],
) -> None:
    architecture = tiny(gguf_architecture, **changes)
    source = tmp_path / "source.gguf"
    write_synthetic(architecture, "f32", source)
    wanted = {**_MIXTURES, **(_PURE if gguf_architecture == "llama" else {})}
    targets = {name: tmp_path / f"{name}.gguf" for name in wanted}
    quantize_with_engine([(str(source), str(targets[name]), wanted[name], name in _PURE) for name in wanted])
    for name, path in targets.items():
        assert dict(read_gguf(path).tensor_types) == dict(tensor_types(architecture, name)), name
