"""ggml's own operators at any shape, on the processor and on its OpenCL backend, each verified against NumPy.

For a process of its own: ggml ends the process where one of its assertions fails. For OpenCL that process is started
with `OpenClBackend.environment()`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from perfsuite.errors import EngineError, ShapeError
from perfsuite.measure.kernel_references import Array, error_norm
from perfsuite.measure.shapes.ggml_inputs import ggml_inputs
from perfsuite.measure.shapes.ggml_operators import GgmlDevice, GgmlOperator, OperatorInput
from perfsuite.measure.shapes.ggml_tolerance import ggml_tolerance
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.measure.shapes.shape_inputs import ShapeInputs
from perfsuite.measure.shapes.shape_references import shape_reference
from perfsuite.workload.shapes.operation_shape import Operation
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

_REGISTRIES = {"cpu": "CPU", "opencl": "OpenCL"}
_SUBJECTS = {"cpu": Subject.GGML_CPU, "opencl": Subject.GGML_OPENCL}

#: Work of a graph that buries the microseconds which starting one takes.
GRAPH_FLOPS = 2_000_000
#: The most operators of a graph; on a device each is a launch, which costs by itself more than a graph's start.
MOST_COPIES = {"cpu": 64, "opencl": 8}


class GgmlBench:
    """ggml's operators on one backend."""

    def __init__(
        self,
        library: ctypes.CDLL,
        *,
        backend: Literal["cpu", "opencl"],
        n_threads: int,
        engine_build_id: str,
        backend_library: Path | None = None,
        n_compute_units: int | None = None,
        fingerprint: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Open a backend.

        `n_threads` are those of the CPU backend, `n_compute_units` those of the OpenCL device; `backend_library` is the
        OpenCL backend, None where the engine was built with it; `fingerprint` is what else must be equal for two runs
        to be comparable, such as `OpenClBackend.fingerprint`.

        Raises `EngineError` where ggml has no such backend, or it takes none of the devices here.
        """
        self._backend = backend
        self._device = GgmlDevice(library, _REGISTRIES[backend], n_threads=n_threads, backend_library=backend_library)
        units = n_threads if backend == "cpu" else n_compute_units or 1
        what = f"{units} threads" if backend == "cpu" else self._device.name
        named = {"engine": engine_build_id, "backend": backend, "device": self._device.name, "units": str(units)}
        self._description = BenchDescription(
            device=f"ggml {_REGISTRIES[backend]}, {what}",
            n_compute_units=units,
            fingerprint=(*named.items(), *fingerprint),
        )

    @property
    def description(self) -> BenchDescription:
        return self._description

    def problem(self, case: ShapeCase) -> str | None:
        if case.subject is not _SUBJECTS[self._backend]:
            return f"subject {case.subject.value}; expected {_SUBJECTS[self._backend].value}"
        return self._device.problem(case.shape)

    def bound(self, case: ShapeCase, *, seed: int) -> GgmlOperation:
        """Draw a case's inputs and place them; `ShapeError` where it has a problem, `EngineError` without memory."""
        if problem := self.problem(case):
            raise ShapeError(f"{case.case_id}: {problem}")
        inputs = ggml_inputs(case.shape, seed=seed)
        with _told(case):
            operator = self._device.operator(case.shape)
            try:
                for which, content in _contents(inputs):
                    operator.set(which, content)
            except EngineError:
                operator.close()
                raise
        # how many operators share the start of a graph is a function of the shape alone, so that shapes compare
        n_copies = max(1, min(MOST_COPIES[self._backend], GRAPH_FLOPS // case.shape.flops))
        return GgmlOperation(case, inputs, operator, n_copies=n_copies)

    def close(self) -> None:
        self._device.close()


class GgmlOperation:
    """One of ggml's operators with its inputs in place."""

    def __init__(self, case: ShapeCase, inputs: ShapeInputs, operator: GgmlOperator, *, n_copies: int) -> None:
        self._case, self._inputs, self._operator, self._n_copies = case, inputs, operator, n_copies
        self._is_warm = False

    def verify(self) -> Deviation:
        reference = shape_reference(self._inputs)
        with _told(self._case):
            self._operator.clear()
            self._operator.compute_ns(1)
            out = self._operator.output(self._case.shape.n_outputs)
        expected = reference.expected
        return Deviation(
            error_norm=math.inf if out is None else error_norm(out.reshape(expected.shape), expected),
            tolerance=ggml_tolerance(self._case, self._inputs, reference),
        )

    def run_ns(self) -> int:
        """Run a graph of identical operators and return what one of them took, its share of the graph's start included.

        The first run is made twice: it finds buffers that nothing has touched.
        """
        with _told(self._case):
            if not self._is_warm:
                self._operator.compute_ns(self._n_copies)
                self._is_warm = True
            return max(1, round(self._operator.compute_ns(self._n_copies) / self._n_copies))

    def close(self) -> None:
        self._operator.close()


def _contents(inputs: ShapeInputs) -> Iterator[tuple[OperatorInput, Array]]:
    """Yield the inputs as ggml has them: a cache holds the heads of a position side by side."""
    yield OperatorInput.ACTIVATIONS, inputs.activations
    shape = inputs.shape
    if shape.operation is not Operation.ATTENTION:
        yield OperatorInput.STORED, inputs.stored[0]
        return
    for which, rows in zip((OperatorInput.STORED, OperatorInput.VALUES), inputs.stored, strict=True):
        by_head = rows.reshape(shape.of("kvheads"), shape.of("context"), -1)
        yield which, by_head.transpose(1, 0, 2)


@contextmanager
def _told(case: ShapeCase) -> Iterator[None]:
    try:
        yield
    except EngineError as error:
        raise EngineError(f"{case.case_id}: {error}") from None
