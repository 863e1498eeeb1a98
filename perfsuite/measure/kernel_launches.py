"""How each kernel case is launched: program, arguments with drawn contents, sizes, and the output to expect."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from perfsuite.measure import kernel_references as references
from perfsuite.measure.kernel_references import Array, Float64Array
from perfsuite.measure.launches.contents import Contents, drawn_array
from perfsuite.measure.launches.plan import Content
from perfsuite.workload.kernel_catalog import KernelCase

RMS_EPSILON = 1e-5
ROPE_BASE = 10_000.0
#: Positions below this are drawn for RoPE: the context that SmolLM2 was trained on is four times as long.
ROPE_POSITIONS = 2048
#: Scores lie about this: exp overflows unless the largest is taken off first.
SOFTMAX_OFFSET = 1000.0

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
class LaunchForm:
    """How one kernel is launched, with its arguments in the order inputs, output, scalars; the output is F32."""

    #: The file in the kernels' directory, and those that stand in front of it.
    source: str
    preludes: tuple[str, ...] = ("prelude.cl",)
    #: The kernel in that file.
    entry: str
    #: Preprocessor definitions that the program is built with.
    defines: tuple[tuple[str, int], ...] = ()
    #: Values that follow the buffers.
    scalars: tuple[Scalar, ...]
    #: Work-items in all, a multiple of the local size.
    global_size: tuple[int, ...]
    #: Work-items of a group; `None` leaves them to the driver.
    local_size: tuple[int, ...] | None = None

    @property
    def build_options(self) -> list[str]:
        """What its program is built with."""
        return ["-cl-std=CL1.2", *(f"-D{name}={value}" for name, value in self.defines)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Launch(LaunchForm):
    """One kernel with the arrays that it reads."""

    inputs: tuple[Array, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescribedLaunch(LaunchForm):
    """A launch of a kernel of the catalogue, of which nothing is drawn yet."""

    #: What the arrays hold that the kernel reads.
    contents: tuple[Content, ...]
    #: Computes the output in float64 from these arrays.
    reference: Callable[..., Float64Array]

    @property
    def expected(self) -> Float64Array:
        """The output to expect of these arrays, which are drawn for it."""
        return self.reference(*map(drawn_array, self.contents))


def describe(case: KernelCase, tuning: Tuning, seed: int) -> DescribedLaunch:
    """Return how a case is launched; a seed draws its inputs independently of those of other cases."""
    return _LAUNCHES[case.name](case, tuning, Contents(seed, case.case_id))


def _gemm(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    m, n, k = _sizes(case)
    return DescribedLaunch(
        source="gemm.cl",
        entry=f"gemm_{case.type}",
        defines=(("TILE", GEMM_TILE), ("ROWS", GEMM_ROWS)),
        contents=(drawn.stored(case.type, m, k), drawn.floats(n, k)),
        scalars=_ints(m, n, k),
        global_size=(_round_up(m, GEMM_TILE), _round_up(n, GEMM_TILE) // GEMM_ROWS),
        local_size=(GEMM_TILE, GEMM_TILE // GEMM_ROWS),
        reference=lambda weights, x: references.gemm(references.dequantize(weights, case.type), x),
    )


def _gemv(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    m, k = _sizes(case)
    return DescribedLaunch(
        source="gemv.cl",
        entry=case.name,
        defines=(("LANES", tuning.lanes), ("ROWS", tuning.rows)),
        contents=(drawn.stored(case.type, m, k), drawn.floats(k)),
        scalars=_ints(m, k),
        global_size=(tuning.lanes, _round_up(m, tuning.rows)),
        local_size=(tuning.lanes, tuning.rows),
        reference=lambda weights, x: references.gemm(references.dequantize(weights, case.type), x),
    )


def _bmm_kq(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    heads, kvheads, tokens, positions, head = _sizes(case)
    return DescribedLaunch(
        source="attention.cl",
        entry=case.name,
        contents=(drawn.halves(positions, kvheads, head), drawn.floats(tokens, heads, head)),
        scalars=_ints(kvheads, positions, head),
        global_size=(_round_up(positions, tuning.group), tokens, heads),
        local_size=(tuning.group, 1, 1),
        reference=lambda keys, queries: references.bmm_kq(references.dequantize(keys, case.type), queries),
    )


def _bmm_kqv(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    heads, kvheads, tokens, positions, head = _sizes(case)
    return DescribedLaunch(
        source="attention.cl",
        entry=case.name,
        contents=(drawn.halves(positions, kvheads, head), drawn.floats(heads, tokens, positions)),
        scalars=_ints(kvheads, positions, head),
        global_size=(head, tokens, heads),
        reference=lambda values, weights: references.bmm_kqv(references.dequantize(values, case.type), weights),
    )


def _rms_norm(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    rows, columns = _sizes(case)
    return _row_launch(
        case,
        tuning,
        rows,
        contents=(drawn.floats(rows, columns), drawn.floats(columns)),
        scalars=(np.int32(columns), np.float32(RMS_EPSILON)),
        reference=partial(references.rms_norm, epsilon=RMS_EPSILON),
    )


def _softmax(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    rows, columns = _sizes(case)
    scale = 0.125
    return _row_launch(
        case,
        tuning,
        rows,
        contents=(drawn.floats(rows, columns, scale=8.0, offset=SOFTMAX_OFFSET),),
        scalars=(np.int32(columns), np.float32(scale)),
        reference=partial(references.softmax, scale=scale),
    )


def _get_rows(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    rows, vocab, columns = _sizes(case)
    return _row_launch(
        case,
        tuning,
        rows,
        contents=(drawn.halves(vocab, columns), drawn.wholes(vocab, rows)),
        scalars=_ints(columns),
        reference=lambda table, ids: references.dequantize(table[ids], case.type),
    )


def _rope(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    tokens, heads, head = _sizes(case)
    return DescribedLaunch(
        source="rope.cl",
        entry=case.name,
        contents=(drawn.floats(tokens, heads, head), drawn.wholes(ROPE_POSITIONS, tokens)),
        scalars=(np.int32(head), np.float32(math.log2(ROPE_BASE))),
        global_size=(head // 2, heads, tokens),
        reference=partial(references.rope, base=ROPE_BASE, neox=case.name == "rope_neox"),
    )


def _silu_mul(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    (count,) = _sizes(case)
    return _value_launch(case, tuning, count, (drawn.floats(count), drawn.floats(count)), references.silu_mul)


def _add(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    (count,) = _sizes(case)
    inputs = (drawn.floats(count), drawn.floats(count))
    return _value_launch(case, tuning, count, inputs, lambda a, b: a.astype(np.float64) + b)


def _dequantize(case: KernelCase, tuning: Tuning, drawn: Contents) -> DescribedLaunch:
    (count,) = _sizes(case)
    blocks = drawn.stored(case.type, 1, count)
    return _value_launch(
        case, tuning, count, (blocks,), lambda stored: references.dequantize(stored, case.type).reshape(count)
    )


def _row_launch(
    case: KernelCase,
    tuning: Tuning,
    rows: int,
    *,
    contents: tuple[Content, ...],
    scalars: tuple[Scalar, ...],
    reference: Callable[..., Float64Array],
) -> DescribedLaunch:
    return DescribedLaunch(
        source="rows.cl",
        entry=case.name,
        defines=(("GROUP", tuning.group),),
        contents=contents,
        scalars=scalars,
        global_size=(rows * tuning.group,),
        local_size=(tuning.group,),
        reference=reference,
    )


def _value_launch(
    case: KernelCase, tuning: Tuning, count: int, contents: tuple[Content, ...], reference: Callable[..., Float64Array]
) -> DescribedLaunch:
    return DescribedLaunch(
        source="pointwise.cl",
        entry=case.name,
        contents=contents,
        scalars=_ints(count),
        global_size=(_round_up(count, tuning.group),),
        reference=reference,
    )


def _sizes(case: KernelCase) -> tuple[int, ...]:
    return tuple(size for _, size in case.shape)


def _ints(*values: int) -> tuple[np.int32, ...]:
    return tuple(np.int32(value) for value in values)


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


_LAUNCHES: dict[str, Callable[[KernelCase, Tuning, Contents], DescribedLaunch]] = {
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
