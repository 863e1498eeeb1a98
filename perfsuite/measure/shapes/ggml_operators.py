"""ggml's operators one by one, as the native worker places, fills and launches them on whatever board it runs."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

import numpy as np

from perfsuite.errors import EngineError
from perfsuite.measure.kernel_references import Array
from perfsuite.measure.shapes.shape_inputs import product_sizes
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape

#: Bytes of an input that cross in one line, and values of an output.
PIECE_BYTES, PIECE_VALUES = 3 << 17, 8192


class OperatorInput(IntEnum):
    """The native side's ``ps_operator_input``."""

    #: Weights or keys.
    STORED = 0
    #: Activations or queries.
    ACTIVATIONS = 1
    VALUES = 2


class Asked(Protocol):
    """A worker that answers lines, as ``native/src/worker/placed_operators.h`` has them."""

    def asked(self, *lines: str, n_steps: int = 1) -> str:
        """Send lines, of which the last one has an answer after so many steps, and return that.

        Raises `EngineError` where the worker says why there is none; `WorkerCrash` where it died or hung at a step.
        """


def tell_bytes(worker: Asked, content: memoryview | bytes) -> None:
    """Send bytes, for the request that follows."""
    for first in range(0, len(content), PIECE_BYTES):
        worker.asked(f"part {base64.b64encode(content[first : first + PIECE_BYTES]).decode()}", n_steps=0)


class WorkerCrash(Exception):  # noqa: N818 - whoever knows the case makes an error of it
    """The worker died or hung."""

    def __init__(self, place: int, how: str) -> None:
        super().__init__(how)
        #: At which step of a request, and in which way.
        self.place, self.how = place, how


class GgmlDevice:
    """A backend of ggml's on its first device; its operators are closed before it is."""

    def __init__(self, worker: Asked, ready: str) -> None:
        """Take a worker that has opened a backend, and what it said when it was ready."""
        self._worker = worker
        machine, memory_bytes, self.name = ready.split(" ", 2)
        #: The processor's architecture there, such as ``aarch64``.
        self.machine = machine
        self.memory_bytes = int(memory_bytes)

    def problem(self, shape: OperationShape) -> str | None:
        """Return why the backend cannot compute an operation, or None where it can."""
        try:
            self._worker.asked(f"check {_spec(shape)}")
        except EngineError as error:
            return str(error)
        return None

    def operator(self, shape: OperationShape, *, n_copies: int) -> GgmlOperator:
        """Place an operation without contents, whose graphs hold so many of it.

        Raises `EngineError` where it cannot be computed or there is no memory.
        """
        return GgmlOperator(self._worker, int(self._worker.asked(f"place {n_copies} {_spec(shape)}")))

    def times_ns(self, operators: Sequence[GgmlOperator], n_launches: int) -> tuple[int, ...]:
        """Launch operators one after the other, each so often; return each one's fastest time."""
        numbers = " ".join(str(each.number) for each in operators)
        answer = self._worker.asked(f"time {n_launches} {numbers}", n_steps=len(operators))
        return tuple(map(int, answer.split()))


class GgmlOperator:
    """An operator with its inputs and its output, there."""

    def __init__(self, worker: Asked, number: int) -> None:
        self._worker = worker
        #: By which the worker knows it; 0 is none's.
        self.number = number

    def set(self, which: OperatorInput, content: Array) -> None:
        """Set the whole of an input to bytes in ggml's order, its first dimension the fastest."""
        flat = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        tell_bytes(self._worker, flat.data)
        self._worker.asked(f"set {self.number} {int(which)}")

    def launched_ns(self, most_launches: int, until_ns: int) -> int:
        """Launch it so often at most, and until so much has passed; return what the fastest graph of it took."""
        return int(self._worker.asked(f"launch {self.number} {most_launches} {until_ns}"))

    def output(self, n_outputs: int) -> Array | None:
        """Compute it once and return so many F32 values of the output; None where something was written behind it."""
        n_values = int(self._worker.asked(f"output {self.number}"))
        pieces = [
            self._worker.asked(f"values {first} {min(PIECE_VALUES, n_values - first)}")
            for first in range(0, n_values, PIECE_VALUES)
        ]
        values = np.frombuffer(b"".join(map(base64.b64decode, pieces)), dtype=np.float32)
        return values[:n_outputs] if np.isnan(values[n_outputs:]).all() else None

    def close(self) -> None:
        if self.number:
            number, self.number = self.number, 0
            self._worker.asked(f"drop {number}")


def _spec(shape: OperationShape) -> str:
    """Return an operation as the native side takes it; the weights of GEMM and GEMV are parameters."""
    if shape.operation is Operation.ATTENTION:
        heads, kv_heads, head, context = shape.sizes
        return f"FLASH_ATTN_EXT {shape.type} {head} 0 1 {heads} {kv_heads} {context - 1}"
    b, m, n, k = product_sizes(shape)
    heads = b if shape.operation is Operation.BMM else 0
    return f"MUL_MAT {shape.type} {k} {n} {m} {heads} {heads} 0"
