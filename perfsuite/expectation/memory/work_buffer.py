"""The CPU backend's scratch memory: activations in the type that the dot product with a matrix takes.

*Source*: ``ggml_graph_plan`` and ``type_traits_cpu`` in ``ggml/src/ggml-cpu/ggml-cpu.c`` of llama.cpp, as shipped with
llama-cpp-python 0.3.36. What each thread keeps for itself, some hundred KB, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.graph import Batch, Operator
from perfsuite.expectation.op_rules import PRODUCTS
from perfsuite.expectation.tensor_shape import row_bytes
from perfsuite.workload.ggml_types import GGML_TYPES

_OWN = frozenset(("F32", "F16", "BF16"))
_WITH_SUMS = frozenset(("Q4_1", "Q5_1"))
_SUPER_BLOCK_VALUES = 256


def work_bytes(workload: LlamaWorkload, batches: Iterable[Batch]) -> int:
    """Return the largest scratch memory that a product of any of these evaluations needs."""
    return max(
        (
            _scratch_bytes(operator)
            for batch in batches
            for operator in workload.operators(batch)
            if operator.op in PRODUCTS
        ),
        default=0,
    )


def _scratch_bytes(operator: Operator) -> int:
    matrix, activations = operator.sources[:2]
    kind = dot_type(matrix.type)
    if kind == activations.type.upper():
        return 0
    block = GGML_TYPES[kind].block_values
    return row_bytes(kind, -(-activations.n_elements // block) * block)


def dot_type(type_name: str) -> str:
    """Return the type that the engine turns activations into for a product with a matrix of a type."""
    name = type_name.upper()
    if name in _OWN:
        return name
    if name in _WITH_SUMS:
        return "Q8_1"
    return "Q8_K" if GGML_TYPES[name].block_values == _SUPER_BLOCK_VALUES else "Q8_0"
