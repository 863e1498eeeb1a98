"""ggml's own operators at any shape, on the processor and on its OpenCL backend, each verified against NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from perfsuite.errors import EngineError
from perfsuite.measure.kernel_references import Array
from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.ggml_numbers import ggml_inputs, ggml_tolerance
from perfsuite.measure.shapes.meter import BenchDescription
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.native_session import NativeSession, PlacedOperation, ShapeWorker, Start, fastest_ns
from perfsuite.measure.shapes.shape_references import ShapeInputs, product_sizes
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

#: A backend's registry in ggml, and what it is called in fingerprints.
_BACKENDS = {Subject.GGML_CPU: ("CPU", "cpu"), Subject.GGML_OPENCL: ("OpenCL", "opencl")}

#: Work of a graph that buries the microseconds which starting one takes.
GRAPH_FLOPS = 2_000_000
#: The most operators of a graph; on a device each is a launch, which costs by itself more than a graph's start.
MOST_COPIES = {Subject.GGML_CPU: 64, Subject.GGML_OPENCL: 8}

#: The native side's ``ps_operator_input``: weights or keys, activations or queries, values.
_STORED, _ACTIVATIONS, _VALUES = range(3)


class GgmlBench:
    """ggml's operators on the first device of one backend."""

    def __init__(self, plan: ShapesPlan, worker: ShapeWorker) -> None:
        """Measure by a worker that was started with a plan."""
        self._subject, self._worker = Subject(plan.subject), worker
        #: The processor's architecture there, such as ``aarch64``.
        self._machine, memory_bytes, device = worker.ready.split(" ", 2)
        self.memory_bytes = int(memory_bytes)
        registry, backend = _BACKENDS[self._subject]
        is_processor = self._subject is Subject.GGML_CPU
        units = plan.n_threads if is_processor else plan.n_compute_units or 1
        named = {"engine": plan.engine_build_id, "backend": backend, "device": device, "units": str(units)}
        self.description = BenchDescription(
            device=f"ggml {registry}, {f'{units} threads' if is_processor else device}",
            n_compute_units=units,
            fingerprint=(*named.items(), *plan.fingerprint),
        )

    def problem(self, case: ShapeCase) -> str | None:
        if case.subject is not self._subject:
            return f"subject {case.subject.value}; expected {self._subject.value}"
        try:
            self._worker.asked(f"check {_spec(case.shape)}", case)
        except EngineError as error:
            return str(error)
        return None

    def placed(self, case: ShapeCase, *, seed: int) -> PlacedOperation:
        """Draw a case's inputs and place them; `EngineError` where it has a problem, or there is no memory."""
        inputs = ggml_inputs(case.shape, seed=seed)
        # how many operators share the start of a graph is a function of the shape alone, so that shapes compare
        n_copies = max(1, min(MOST_COPIES[self._subject], GRAPH_FLOPS // case.shape.flops))
        number = int(self._worker.asked(f"place {n_copies} {_spec(case.shape)}", case))
        tolerance = partial(ggml_tolerance, case, machine=self._machine)
        operation = PlacedOperation(self._worker, number, case, inputs, tolerance)
        try:
            for which, content in _contents(inputs):
                flat = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
                self._worker.asked(f"set {number} {which}", case, content=flat.data)
        except EngineError:
            operation.close()
            raise
        return operation

    def samples(self, operations: Sequence[PlacedOperation], n_launches: int) -> tuple[int, ...]:
        """Launch operations one after the other, as `ShapeBench`: a share of a graph, its start included."""
        return fastest_ns(self._worker, operations, n_launches)


class GgmlSession(NativeSession):
    """A session of ggml's operators."""

    def __init__(self, start: Start, setup: ShapeSetup, *, limit_s: float) -> None:
        """Start the worker of a plan with a library of ggml's."""
        plan = replace(setup.plan, step_limit_s=limit_s)
        super().__init__(start, plan, setup.environment, partial(GgmlBench, plan), seed=plan.seed, limit_s=limit_s)


def _contents(inputs: ShapeInputs) -> Iterator[tuple[int, Array]]:
    """Yield the inputs as ggml has them: a cache holds the heads of a position side by side."""
    yield _ACTIVATIONS, inputs.activations
    shape = inputs.shape
    if shape.operation is not Operation.ATTENTION:
        yield _STORED, inputs.stored[0]
        return
    for which, rows in zip((_STORED, _VALUES), inputs.stored, strict=True):
        yield which, rows.reshape(shape.of("kvheads"), shape.of("context"), -1).transpose(1, 0, 2)


def _spec(shape: OperationShape) -> str:
    """Return an operation as the native side takes it; the weights of GEMM and GEMV are parameters."""
    if shape.operation is Operation.ATTENTION:
        heads, kv_heads, head, context = shape.sizes
        return f"FLASH_ATTN_EXT {shape.type} {head} 0 1 {heads} {kv_heads} {context - 1}"
    b, m, n, k = product_sizes(shape)
    heads = b if shape.operation is Operation.BMM else 0
    return f"MUL_MAT {shape.type} {k} {n} {m} {heads} {heads} 0"
