"""ggml's operators one by one, as the native library runs them: each with its inputs and its output on a device."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import partial
from pathlib import Path

import numpy as np

from perfsuite.errors import EngineError
from perfsuite.measure.kernel_references import Array
from perfsuite.measure.native import checked, declare_functions
from perfsuite.measure.operator_bench import OperatorSpec, ggml_type_name
from perfsuite.measure.shapes.shape_inputs import product_sizes
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape

_checked = partial(checked, otherwise="ggml failed without a word")

_FUNCTIONS = (
    ("ps_operator_device_name", ctypes.c_char_p, (ctypes.c_void_p,)),
    ("ps_operator_device_close", None, (ctypes.c_void_p,)),
    ("ps_operator_output_values", ctypes.c_size_t, (ctypes.c_void_p,)),
    ("ps_operator_close", None, (ctypes.c_void_p,)),
)


class OperatorInput(IntEnum):
    """The native side's ``ps_operator_input``."""

    #: Weights or keys.
    STORED = 0
    #: Activations or queries.
    ACTIVATIONS = 1
    VALUES = 2


class GgmlDevice:
    """A backend of ggml's on its first device; its operators are closed before it is."""

    def __init__(
        self, library: ctypes.CDLL, registry: str, *, n_threads: int, backend_library: Path | None = None
    ) -> None:
        """Open the backend ``CPU`` or ``OpenCL``; `EngineError` where ggml has none, or it takes no device here."""
        declare_functions(library, *_FUNCTIONS)
        self._library, self._handle = library, ctypes.c_void_p()
        path = str(backend_library).encode() if backend_library else None
        opened = (registry.encode(), path, ctypes.c_int32(n_threads), ctypes.byref(self._handle))
        _checked(library.ps_operator_device_open, *opened)

    @property
    def name(self) -> str:
        named: bytes = self._library.ps_operator_device_name(self._handle)
        return named.decode(errors="replace")

    def problem(self, shape: OperationShape) -> str | None:
        """Return why the backend cannot compute an operation, or None where it can."""
        try:
            _checked(self._library.ps_operator_check, self._handle, ctypes.byref(operator_spec(shape)))
        except EngineError as error:
            return str(error)
        return None

    def operator(self, shape: OperationShape) -> GgmlOperator:
        """Place an operation without contents; `EngineError` where it cannot be computed or there is no memory."""
        handle = ctypes.c_void_p()
        _checked(self._library.ps_operator_open, self._handle, ctypes.byref(operator_spec(shape)), ctypes.byref(handle))
        return GgmlOperator(self._library, handle)

    def close(self) -> None:
        if self._handle:
            self._library.ps_operator_device_close(self._handle)
            self._handle = ctypes.c_void_p()


class GgmlOperator:
    """An operator with its inputs and its output."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._library, self._handle = library, handle

    def set(self, which: OperatorInput, content: Array) -> None:
        """Set the whole of an input to bytes in ggml's order, its first dimension the fastest."""
        flat = np.ascontiguousarray(content)
        pointer, n_bytes = flat.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(flat.nbytes)
        _checked(self._library.ps_operator_set, self._open(), ctypes.c_int32(which), pointer, n_bytes)

    def clear(self) -> None:
        _checked(self._library.ps_operator_clear, self._open())

    def compute_ns(self, n_copies: int) -> int:
        """Compute a graph of so many identical operators, and return what it took, its start included."""
        elapsed_ns = ctypes.c_int64()
        _checked(self._library.ps_operator_compute, self._open(), ctypes.c_int32(n_copies), ctypes.byref(elapsed_ns))
        return elapsed_ns.value

    def output(self, n_outputs: int) -> Array | None:
        """Return so many F32 values of the output; None where something was written behind it."""
        values = np.empty(self._library.ps_operator_output_values(self._open()), dtype=np.float32)
        pointer, n_values = values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.size)
        _checked(self._library.ps_operator_read, self._open(), pointer, n_values)
        return values[:n_outputs] if np.isnan(values[n_outputs:]).all() else None

    def close(self) -> None:
        if self._handle:
            self._library.ps_operator_close(self._handle)
            self._handle = ctypes.c_void_p()

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise EngineError("the operator is closed; open another")
        return self._handle


def operator_spec(shape: OperationShape) -> OperatorSpec:
    """Return an operation as the native side takes it; the weights of GEMM and GEMV are parameters."""
    type = ggml_type_name(shape.type)
    if shape.operation is Operation.ATTENTION:
        heads, kv_heads, head, context = shape.sizes
        sizes = {"n_inner": head, "n_heads": heads, "n_kv_heads": kv_heads, "n_tokens": 1, "n_past": context - 1}
        return OperatorSpec(op=b"FLASH_ATTN_EXT", type=type, **sizes)
    b, m, n, k = product_sizes(shape)
    heads = b if shape.operation is Operation.BMM else 0
    return OperatorSpec(op=b"MUL_MAT", type=type, n_inner=k, n_outer=n, n_tokens=m, n_heads=heads, n_kv_heads=heads)
