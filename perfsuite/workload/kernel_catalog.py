"""The kernels that the suite measures: shapes of real architectures, with their FLOPs and bytes.

One convention for every kernel: 1 MAC is 2 FLOPs; a division, square root or transcendental function is 1, a change of
sign or of type none; what an implementation computes twice, or to unpack weights inside a product, is not counted.
Bytes are the least that must move: each operand read once, each output written once. Activations and outputs are F32.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from perfsuite.errors import OpenClError
from perfsuite.workload.ggml_types import GGML_TYPES


def _stored_bytes(type: str, count: int) -> int:
    return GGML_TYPES[type.upper()].row_bytes(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCase:
    """One kernel at one shape: what is measured under one case id."""

    #: The kernel, such as ``gemv_q8_0``.
    name: str
    #: The dimensions in the order of the case id, each a name and a positive size.
    shape: tuple[tuple[str, int], ...]
    #: How the weights, the cache or the table are stored, such as ``q8_0``.
    type: str

    def __post_init__(self) -> None:
        """Refuse a kernel, type or shape that the catalogue has no kernel for."""
        if self.name not in _KERNELS or self.type not in _KERNELS[self.name].types:
            kernels = ", ".join(f"{name} ({' '.join(kernel.types)})" for name, kernel in _KERNELS.items())
            raise OpenClError(f"{self.case_id}: no such kernel; expected one of {kernels}")
        dimensions = _KERNELS[self.name].dimensions
        if tuple(self.sizes) != dimensions or any(size < 1 for size in self.sizes.values()):
            raise OpenClError(f"{self.case_id}: expected a positive size for each of {', '.join(dimensions)}, in order")
        dimension, multiple = dimensions[-1], _KERNELS[self.name].multiple * GGML_TYPES[self.type.upper()].block_values
        if self.sizes[dimension] % multiple:
            raise OpenClError(f"{self.case_id}: expected {dimension} to be a multiple of {multiple}")
        if "kvheads" in self.sizes and self.sizes["heads"] % self.sizes["kvheads"]:
            raise OpenClError(f"{self.case_id}: expected heads to be a multiple of kvheads")

    @classmethod
    def from_id(cls, case_id: str) -> KernelCase:
        """Return the case that a case id names; `OpenClError` when it names none."""
        match = re.fullmatch(r"kernel/(\w+)/([a-z]+\d+(?:-[a-z]+\d+)*)/(\w+)", case_id)
        if match is None:
            raise OpenClError(f"{case_id}: not a kernel's case id; expected kernel/<name>/<shape>/<type>")
        shape = tuple((dimension, int(size)) for dimension, size in re.findall(r"([a-z]+)(\d+)", match[2]))
        return cls(name=match[1], shape=shape, type=match[3])

    @property
    def case_id(self) -> str:
        """The key of baselines and history, such as ``kernel/gemm/m64-n64-k576/f32``."""
        shape = "-".join(f"{dimension}{size}" for dimension, size in self.shape)
        return f"kernel/{self.name}/{shape}/{self.type}"

    @property
    def sizes(self) -> dict[str, int]:
        return dict(self.shape)

    @property
    def flops(self) -> int:
        """Floating-point operations of one launch."""
        return self._cost[0]

    @property
    def read_bytes(self) -> int:
        """Bytes that one launch must read."""
        return self._cost[1]

    @property
    def written_bytes(self) -> int:
        """Bytes that one launch must write."""
        return self._cost[2]

    @property
    def _cost(self) -> tuple[int, int, int]:
        return _KERNELS[self.name].cost(self.type, *(size for _, size in self.shape))


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel: FLOPs, bytes read and bytes written, from the type and the sizes of its shape."""

    cost: Callable[..., tuple[int, int, int]]
    #: The names of the sizes, its types, and what the last size is a multiple of.
    dimensions: tuple[str, ...]
    types: tuple[str, ...] = ("f32",)
    multiple: int = 1


def _gemm(type: str, m: int, n: int, k: int) -> tuple[int, int, int]:
    """``2 m n k`` FLOPs; weights m x k and activations n x k in, n x m out."""
    return 2 * m * n * k, _stored_bytes(type, m * k) + 4 * n * k, 4 * n * m


def _gemv(type: str, m: int, k: int) -> tuple[int, int, int]:
    """``2 m k`` FLOPs; weights m x k and one activation row in, m values out."""
    return _gemm(type, m, 1, k)


def _bmm_kq(type: str, heads: int, kvheads: int, tokens: int, positions: int, head: int) -> tuple[int, int, int]:
    """``2 heads tokens positions head`` FLOPs; the cache's keys and the queries in, a score for each product out."""
    scores = heads * tokens * positions
    read_bytes = _stored_bytes(type, positions * kvheads * head) + 4 * tokens * heads * head
    return 2 * scores * head, read_bytes, 4 * scores


def _bmm_kqv(type: str, heads: int, kvheads: int, tokens: int, positions: int, head: int) -> tuple[int, int, int]:
    """As `_bmm_kq`, with the cache's values and the weights in and tokens x heads x head out."""
    weights = heads * tokens * positions
    read_bytes = _stored_bytes(type, positions * kvheads * head) + 4 * weights
    return 2 * weights * head, read_bytes, 4 * tokens * heads * head


def _rms_norm(type: str, rows: int, columns: int) -> tuple[int, int, int]:
    """``rows (4 columns + 4)``: square, add and two products a value; mean, epsilon, root and inverse a row."""
    return rows * (4 * columns + 4), 4 * rows * columns + _stored_bytes(type, columns), 4 * rows * columns


def _rope(type: str, tokens: int, heads: int, head: int) -> tuple[int, int, int]:
    """``11 tokens heads head / 2``: 5 for a pair's angle, its sine and cosine, 6 to turn it; positions are int32."""
    values = tokens * heads * head
    return 11 * values // 2, _stored_bytes(type, values) + 4 * tokens, 4 * values


def _softmax(type: str, rows: int, columns: int) -> tuple[int, int, int]:
    """``rows (6 columns + 1)``: scale, maximum, difference, power, sum and product a value; one inverse a row."""
    return rows * (6 * columns + 1), _stored_bytes(type, rows * columns), 4 * rows * columns


def _pointwise(flops: int, n_inputs: int) -> Callable[[str, int], tuple[int, int, int]]:
    """Return the cost of so many FLOPs a value, from so many operands."""
    return lambda type, count: (flops * count, n_inputs * _stored_bytes(type, count), 4 * count)


def _get_rows(type: str, rows: int, vocab: int, columns: int) -> tuple[int, int, int]:
    """No FLOPs; ``rows`` int32 ids and the rows that they name in (not the table), as many F32 rows out."""
    return 0, 4 * rows + _stored_bytes(type, rows * columns), 4 * rows * columns


_ATTENTION = ("heads", "kvheads", "tokens", "positions", "head")
_KERNELS: dict[str, _Kernel] = {
    "gemm": _Kernel(_gemm, ("m", "n", "k"), ("f32", "f16")),
    "gemv_f32": _Kernel(_gemv, ("m", "k")),
    "gemv_f16": _Kernel(_gemv, ("m", "k"), ("f16",)),
    "gemv_q8_0": _Kernel(_gemv, ("m", "k"), ("q8_0",)),
    "gemv_q4_0": _Kernel(_gemv, ("m", "k"), ("q4_0",)),
    "bmm_kq": _Kernel(_bmm_kq, _ATTENTION, ("f16",)),
    "bmm_kqv": _Kernel(_bmm_kqv, _ATTENTION, ("f16",)),
    "rms_norm": _Kernel(_rms_norm, ("rows", "columns")),
    "rope_normal": _Kernel(_rope, ("tokens", "heads", "head"), multiple=2),
    "rope_neox": _Kernel(_rope, ("tokens", "heads", "head"), multiple=2),
    "softmax": _Kernel(_softmax, ("rows", "columns")),
    # Power, sum, quotient and product.
    "silu_mul": _Kernel(_pointwise(4, 2), ("count",)),
    "add": _Kernel(_pointwise(1, 2), ("count",)),
    # The product with the scale, and in four bits the difference from 8.
    "dequantize_q8_0": _Kernel(_pointwise(1, 1), ("count",), ("q8_0",)),
    "dequantize_q4_0": _Kernel(_pointwise(2, 1), ("count",), ("q4_0",)),
    "get_rows": _Kernel(_get_rows, ("rows", "vocab", "columns"), ("f16",)),
}

#: SmolLM2-135M (hidden 576, feed-forward 1536, 9 heads on 3, head 64) and Llama-3.2-1B (2048, 8192, 32 on 8, 64):
#: a decode step at a depth of 1024, a prompt of 32 to 512 tokens (2048 where it is only looked up).
STANDARD_KERNELS: tuple[KernelCase, ...] = tuple(
    KernelCase.from_id(f"kernel/{case}")
    for case in (
        "gemm/m576-n128-k576/f32",
        "gemm/m1536-n64-k576/f32",
        "gemm/m192-n128-k576/f16",
        "gemm/m2048-n32-k2048/f16",
        "gemv_f32/m1536-k576/f32",
        "gemv_f32/m2048-k2048/f32",
        "gemv_f16/m1536-k576/f16",
        "gemv_f16/m2048-k2048/f16",
        "gemv_q8_0/m1536-k576/q8_0",
        "gemv_q8_0/m2048-k2048/q8_0",
        "gemv_q8_0/m2048-k8192/q8_0",
        "gemv_q4_0/m2048-k2048/q4_0",
        "gemv_q4_0/m8192-k2048/q4_0",
        "bmm_kq/heads9-kvheads3-tokens64-positions64-head64/f16",
        "bmm_kq/heads32-kvheads8-tokens1-positions1024-head64/f16",
        "bmm_kqv/heads9-kvheads3-tokens64-positions64-head64/f16",
        "bmm_kqv/heads32-kvheads8-tokens1-positions1024-head64/f16",
        "rms_norm/rows256-columns576/f32",
        "rms_norm/rows128-columns2048/f32",
        "rope_normal/tokens128-heads32-head64/f32",
        "rope_neox/tokens512-heads9-head64/f32",
        "softmax/rows576-columns512/f32",
        "softmax/rows2048-columns64/f32",
        "silu_mul/count98304/f32",
        "silu_mul/count1048576/f32",
        "add/count147456/f32",
        "add/count1048576/f32",
        "dequantize_q8_0/count884736/q8_0",
        "dequantize_q4_0/count884736/q4_0",
        "get_rows/rows2048-vocab49152-columns576/f16",
    )
)
