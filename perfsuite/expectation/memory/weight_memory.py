"""What the weights take: the part of the file that stays mapped, and what the engine copies beside it.

With `mmap`, llama.cpp reads the whole file in (``MAP_POPULATE``), copies what it interleaves into a buffer of its own,
and then gives back the ends of the file in front of the first and behind the last tensor that it uses in place. What
lies between stays mapped, used in place or not. What its CPU backend interleaves goes by type, rows and
processor; RISC-V and z paths, AMX and KleidiAI are not covered.

*Source*: ``llama_mmap`` in ``src/llama-mmap.cpp``, ``load_all_data`` in ``src/llama-model-loader.cpp``,
``ggml_repack_get_optimal_repack_type`` and ``supports_op`` in ``ggml/src/ggml-cpu/repack.cpp`` of llama.cpp, as shipped
with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graphs.operator import row_bytes
from perfsuite.workload.tensors import TensorSpec, tensor_specs
from perfsuite.workload.weights import Weights

#: What the engine asks of the processor, by the names of ``ggml_cpu_has_*``.
CPU_FEATURES = ("avx2", "avx512", "neon", "dotprod", "matmul_int8")

_I8MM = frozenset(("neon", "matmul_int8"))
_DOT = frozenset(("neon", "dotprod"))

#: For each type: features that must all be there, and rows of which a matrix must have a multiple.
_RULES: dict[str, tuple[tuple[frozenset[str], int], ...]] = {
    "Q4_0": ((frozenset(("avx2",)), 8), (_I8MM, 4), (_DOT, 4)),
    "Q4_K": ((frozenset(("avx2",)), 8), (_I8MM, 8), (_DOT, 8)),
    "Q2_K": ((frozenset(("avx512",)), 8),),
    "Q5_K": ((_I8MM, 8), (_DOT, 8)),
    "Q6_K": ((_I8MM, 8), (_DOT, 8)),
    "IQ4_NL": ((frozenset(("avx2",)), 8), (_DOT, 4)),
    "MXFP4": ((frozenset(("avx2",)), 8), (_DOT, 4)),
    "Q8_0": ((_I8MM, 4), (_DOT, 4)),
    "Q1_0": ((_I8MM, 4), (_DOT, 4)),
}


def is_repacked(spec: TensorSpec, type_name: str, cpu_features: Collection[str]) -> bool:
    """Whether a tensor is copied, interleaved: a matrix, or the matrices of routed experts, of a fitting shape.

    The token embeddings are looked up row by row and stay as they are; where they are the output matrix as well, that
    is a second tensor, which `weight_memory` counts.
    """
    return _is_product(spec) and fits_repacking(spec, type_name, cpu_features)


def fits_repacking(spec: TensorSpec, type_name: str, cpu_features: Collection[str]) -> bool:
    """Whether a product with this tensor has an interleaved form on a processor with these features."""
    rows = spec.ne[1] if len(spec.ne) > 1 else 1
    return any(
        needed <= frozenset(cpu_features) and rows % multiple == 0
        for needed, multiple in _RULES.get(type_name.upper(), ())
    )


def _is_product(spec: TensorSpec) -> bool:
    n_dimensions = max((at + 1 for at, n in enumerate(spec.ne) if n > 1), default=1)
    is_experts = spec.name.endswith("_exps.weight")
    return spec.name != "token_embd.weight" and n_dimensions == (3 if is_experts else 2)


#: Tensors begin at multiples of this in a GGUF that says nothing else, and in the engine's buffers.
_ALIGNMENT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightMemory:
    """The bytes of a model's weights, by where they lie."""

    #: The tensors in the file, all of which are resident while it is loaded.
    file_bytes: int
    #: From the first to the last tensor that is used in place.
    mapped_bytes: int
    #: Interleaved copies.
    repacked_bytes: int


def weight_memory(weights: Weights, cpu_features: Collection[str]) -> WeightMemory:
    """Return what weights take on a processor with these features (`repack.CPU_FEATURES`).

    Raises ArchitectureError: A tensor of the file is none that its architecture has, so its size is not known.
    """
    placed = tuple(_placed(weights))
    kept = [(at, at + size) for spec, type_name, at, size in placed if not is_repacked(spec, type_name, cpu_features)]
    repacked = sum(_aligned(size) for spec, type_name, _, size in placed if is_repacked(spec, type_name, cpu_features))
    return WeightMemory(
        file_bytes=max(at + size for *_, at, size in placed),
        mapped_bytes=max(end for _, end in kept) - min(start for start, _ in kept),
        repacked_bytes=repacked + _tied_output_bytes(weights, cpu_features),
    )


def _placed(weights: Weights) -> Iterator[tuple[TensorSpec, str, int, int]]:
    """Yield each tensor with its type, its offset behind the header, and its size, in the file's order."""
    specs = {spec.name: spec for spec in tensor_specs(weights.architecture)}
    at = 0
    for name, type_name in weights.tensor_types.items():
        if name not in specs:
            raise ArchitectureError(f"{weights.name}: {name} is not a tensor of {weights.architecture.name}")
        size = tensor_bytes(specs[name], type_name)
        yield specs[name], type_name, at, size
        at += _aligned(size)


def tensor_bytes(spec: TensorSpec, type_name: str) -> int:
    """Return the stored size of a tensor."""
    return row_bytes(type_name, spec.ne[0]) * spec.n_rows


def _tied_output_bytes(weights: Weights, cpu_features: Collection[str]) -> int:
    """Return the size of the output matrix that is made from the token embeddings, where it is interleaved."""
    architecture = weights.architecture
    spec = TensorSpec(name="token_embd.weight", ne=(architecture.n_embd, architecture.n_vocab))
    type_name = weights.tensor_types[spec.name]
    if not architecture.tied_embeddings or not fits_repacking(spec, type_name, cpu_features):
        return 0
    return _aligned(tensor_bytes(spec, type_name))


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
