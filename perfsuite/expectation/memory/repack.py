"""Which weights llama.cpp's CPU backend interleaves into a second buffer, by type, rows and processor.

*Source*: ``ggml_repack_get_optimal_repack_type`` and ``supports_op`` in ``ggml/src/ggml-cpu/repack.cpp`` of llama.cpp,
as shipped with llama-cpp-python 0.3.36. Its RISC-V and z paths, AMX and KleidiAI are not covered.
"""

from __future__ import annotations

from collections.abc import Collection

from perfsuite.workload.tensors import TensorSpec

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
