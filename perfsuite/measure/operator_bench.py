"""Measures single ggml operators of the loaded engine, in graphs of nothing else."""

from __future__ import annotations

import ctypes
from dataclasses import fields
from statistics import median

from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.native import checked, native_fields

_MOST_SAMPLES = 200
#: From this many rows on arithmetic takes far longer than the weights' way from memory, and fewer of them do.
_MANY_TOKENS = 128
_FEWER = 4
_COUNTS = tuple(field.name for field in fields(OperatorShape) if field.name not in ("op", "type"))


class OperatorSpec(ctypes.Structure):
    """``ps_operator_spec`` of ``native/include/perfsuite/operator_bench.h``."""

    _fields_ = native_fields((ctypes.c_char_p, "op type"), (ctypes.c_int64, " ".join((*_COUNTS, "spread_bytes"))))


def operator_time_ns(
    library: ctypes.CDLL, shape: OperatorShape, *, n_threads: int, budget_ns: int, spread_bytes: int
) -> float:
    """Return the median time of an operator within a graph of its like, ns, its dispatch included.

    At least two repetitions are made, whatever `budget_ns`. `spread_bytes` of parameters are read before one of them is
    read again: more than the caches hold, as in a whole model.

    Raises `EngineError` where ggml has no such operator or type, or no memory for it.
    """
    counts = {name: getattr(shape, name) for name in _COUNTS}
    spread = spread_bytes if shape.n_tokens < _MANY_TOKENS else spread_bytes // _FEWER
    spec = OperatorSpec(op=shape.op.encode(), type=ggml_type_name(shape.type), spread_bytes=spread, **counts)
    samples, n_samples = (ctypes.c_double * _MOST_SAMPLES)(), ctypes.c_int32()
    checked(
        library.ps_operator_bench,
        ctypes.byref(spec),
        ctypes.c_int32(n_threads),
        ctypes.c_int64(budget_ns),
        samples,
        ctypes.c_int32(_MOST_SAMPLES),
        ctypes.byref(n_samples),
        otherwise=f"ggml cannot measure {shape.op}",
    )
    return median(samples[: n_samples.value])


def ggml_type_name(type_name: str) -> bytes:
    """Return a type as ``ggml_type_name`` spells it: the k of k-quants is a capital."""
    name = type_name.lower()
    return (f"{name[:-1]}K" if name.endswith("_k") else name).encode()
