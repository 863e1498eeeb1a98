"""One ggml operator as the native engine library is asked for it."""

from __future__ import annotations

import ctypes
from dataclasses import fields

from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.native import native_fields

_COUNTS = tuple(field.name for field in fields(OperatorShape) if field.name not in ("op", "type"))


class OperatorSpec(ctypes.Structure):
    """``ps_operator_spec`` of ``native/include/perfsuite/operator_bench.h``."""

    _fields_ = native_fields((ctypes.c_char_p, "op type"), (ctypes.c_int64, " ".join((*_COUNTS, "spread_bytes"))))


def ggml_type_name(type_name: str) -> bytes:
    """Return a type as ``ggml_type_name`` spells it: the k of k-quants is a capital."""
    name = type_name.lower()
    return (f"{name[:-1]}K" if name.endswith("_k") else name).encode()
