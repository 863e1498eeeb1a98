"""How each kernel case is launched: program, arguments with random contents, sizes, and the output to expect."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from perfsuite.measure import kernel_references as references
from perfsuite.measure.kernel_references import Array, floats, halves, stored
from perfsuite.workload.kernel_catalog import KernelCase

RMS_EPSILON = 1e-5
ROPE_BASE = 10_000.0
#: Positions below this are drawn for RoPE: the context that SmolLM2 was trained on is four times as long.
ROPE_POSITIONS = 2048
#: Scores lie about this: exp overflows unless the largest is taken off first.
SOFTMAX_OFFSET = np.float32(1000)

Scalar = np.int32 | np.float32


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How work is cut for a kind of device; a kernel is correct with any."""

    #: Items of a work-group that shares a row, and of a group of single values; a power of two.
    group: int
    #: Items that share a row of a matrix-vector product.
    lanes: int
    #: Rows of a work-group of that product.
    rows: int


#: A CPU's runtime makes vectors of neighbouring items and loops over the rest of the group between barriers.
CPU_TUNING = Tuning(group=16, lanes=1, rows=16)
GPU_TUNING = Tuning(group=128, lanes=16, rows=4)

GEMM_TILE, GEMM_ROWS = 32, 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Launch:
    """One kernel with its arguments, in the order inputs, output, scalars; the output is F32."""

    #: The file in the kernels' directory, and those that stand in front of it.
    source: str
    preludes: tuple[str, ...] = ("prelude.cl",)
    #: The kernel in that file.
    entry: str
    #: Preprocessor definitions that the program is built with.
    defines: tuple[tuple[str, int], ...] = ()
    #: Arrays that the kernel reads.
    inputs: tuple[Array, ...]
    #: Values that follow the buffers.
    scalars: tuple[Scalar, ...]
    #: Work-items in all, a multiple of the local size.
    global_size: tuple[int, ...]
    #: Work-items of a group; `None` leaves them to the driver.
    local_size: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelLaunch(Launch):
    """A launch of a kernel of the catalogue, whose output is known."""

    #: The output in float64, in its shape.
    expected: NDArray[np.float64]


def prepare(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    """Draw a case's inputs and compute the output to expect of them."""
    return _LAUNCHES[case.name](case, tuning, rng)


def _gemm(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    m, n, k = _sizes(case)
    weights, activations = stored(rng, case.type, m, k), floats(rng, n, k)
    return KernelLaunch(
        source="gemm.cl",
        entry=f"gemm_{case.type}",
        defines=(("TILE", GEMM_TILE), ("ROWS", GEMM_ROWS)),
        inputs=(weights, activations),
        scalars=_ints(m, n, k),
        global_size=(_round_up(m, GEMM_TILE), _round_up(n, GEMM_TILE) // GEMM_ROWS),
        local_size=(GEMM_TILE, GEMM_TILE // GEMM_ROWS),
        expected=references.gemm(references.dequantize(weights, case.type), activations),
    )


def _gemv(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    m, k = _sizes(case)
    weights, x = stored(rng, case.type, m, k), floats(rng, k)
    return KernelLaunch(
        source="gemv.cl",
        entry=case.name,
        defines=(("LANES", tuning.lanes), ("ROWS", tuning.rows)),
        inputs=(weights, x),
        scalars=_ints(m, k),
        global_size=(tuning.lanes, _round_up(m, tuning.rows)),
        local_size=(tuning.lanes, tuning.rows),
        expected=references.gemm(references.dequantize(weights, case.type), x),
    )


def _bmm_kq(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    heads, kvheads, tokens, positions, head = _sizes(case)
    keys, queries = halves(rng, positions, kvheads, head), floats(rng, tokens, heads, head)
    return KernelLaunch(
        source="attention.cl",
        entry=case.name,
        inputs=(keys, queries),
        scalars=_ints(kvheads, positions, head),
        global_size=(_round_up(positions, tuning.group), tokens, heads),
        local_size=(tuning.group, 1, 1),
        expected=references.bmm_kq(references.dequantize(keys, case.type), queries),
    )


def _bmm_kqv(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    heads, kvheads, tokens, positions, head = _sizes(case)
    values, weights = halves(rng, positions, kvheads, head), floats(rng, heads, tokens, positions)
    return KernelLaunch(
        source="attention.cl",
        entry=case.name,
        inputs=(values, weights),
        scalars=_ints(kvheads, positions, head),
        global_size=(head, tokens, heads),
        expected=references.bmm_kqv(references.dequantize(values, case.type), weights),
    )


def _rms_norm(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    rows, columns = _sizes(case)
    x, weight = floats(rng, rows, columns), floats(rng, columns)
    expected = references.rms_norm(x, weight, RMS_EPSILON)
    scalars = (np.int32(columns), np.float32(RMS_EPSILON))
    return _row_launch(case, tuning, rows, inputs=(x, weight), scalars=scalars, expected=expected)


def _softmax(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    rows, columns = _sizes(case)
    x, scale = floats(rng, rows, columns) * 8 + SOFTMAX_OFFSET, 0.125
    expected = references.softmax(x, scale)
    scalars = (np.int32(columns), np.float32(scale))
    return _row_launch(case, tuning, rows, inputs=(x,), scalars=scalars, expected=expected)


def _get_rows(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    rows, vocab, columns = _sizes(case)
    table, ids = halves(rng, vocab, columns), rng.integers(vocab, size=rows, dtype=np.int32)
    expected = references.dequantize(table[ids], case.type)
    return _row_launch(case, tuning, rows, inputs=(table, ids), scalars=_ints(columns), expected=expected)


def _rope(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    tokens, heads, head = _sizes(case)
    x, positions = floats(rng, tokens, heads, head), rng.integers(ROPE_POSITIONS, size=tokens, dtype=np.int32)
    return KernelLaunch(
        source="rope.cl",
        entry=case.name,
        inputs=(x, positions),
        scalars=(np.int32(head), np.float32(math.log2(ROPE_BASE))),
        global_size=(head // 2, heads, tokens),
        expected=references.rope(x, positions, ROPE_BASE, neox=case.name == "rope_neox"),
    )


def _silu_mul(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    (count,) = _sizes(case)
    gate, up = floats(rng, count), floats(rng, count)
    return _value_launch(case, tuning, count, inputs=(gate, up), expected=references.silu_mul(gate, up))


def _add(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    (count,) = _sizes(case)
    a, b = floats(rng, count), floats(rng, count)
    return _value_launch(case, tuning, count, inputs=(a, b), expected=a.astype(np.float64) + b)


def _dequantize(case: KernelCase, tuning: Tuning, rng: Generator) -> KernelLaunch:
    (count,) = _sizes(case)
    blocks = stored(rng, case.type, 1, count)
    expected = references.dequantize(blocks, case.type).reshape(count)
    return _value_launch(case, tuning, count, inputs=(blocks,), expected=expected)


def _row_launch(
    case: KernelCase,
    tuning: Tuning,
    rows: int,
    *,
    inputs: tuple[Array, ...],
    scalars: tuple[Scalar, ...],
    expected: NDArray[np.float64],
) -> KernelLaunch:
    return KernelLaunch(
        source="rows.cl",
        entry=case.name,
        defines=(("GROUP", tuning.group),),
        inputs=inputs,
        scalars=scalars,
        global_size=(rows * tuning.group,),
        local_size=(tuning.group,),
        expected=expected,
    )


def _value_launch(
    case: KernelCase, tuning: Tuning, count: int, *, inputs: tuple[Array, ...], expected: NDArray[np.float64]
) -> KernelLaunch:
    return KernelLaunch(
        source="pointwise.cl",
        entry=case.name,
        inputs=inputs,
        scalars=_ints(count),
        global_size=(_round_up(count, tuning.group),),
        expected=expected,
    )


def _sizes(case: KernelCase) -> tuple[int, ...]:
    return tuple(size for _, size in case.shape)


def _ints(*values: int) -> tuple[np.int32, ...]:
    return tuple(np.int32(value) for value in values)


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


_LAUNCHES: dict[str, Callable[[KernelCase, Tuning, Generator], KernelLaunch]] = {
    "gemm": _gemm,
    **{f"gemv_{type}": _gemv for type in ("f32", "f16", "q8_0", "q4_0")},
    "bmm_kq": _bmm_kq,
    "bmm_kqv": _bmm_kqv,
    "rms_norm": _rms_norm,
    **{f"rope_{style}": _rope for style in ("normal", "neox")},
    "softmax": _softmax,
    "silu_mul": _silu_mul,
    "add": _add,
    **{f"dequantize_{type}": _dequantize for type in ("q8_0", "q4_0")},
    "get_rows": _get_rows,
}
