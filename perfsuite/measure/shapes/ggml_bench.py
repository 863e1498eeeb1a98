"""ggml's own operators at any shape, on the processor and on its OpenCL backend, each verified against NumPy.

What launches is the native worker, here or on a board; inputs are drawn, and outputs judged, where this runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from perfsuite.errors import EngineError, ShapeCrashError
from perfsuite.measure.kernel_references import Array, error_norm
from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.ggml_inputs import ggml_inputs
from perfsuite.measure.shapes.ggml_operators import Asked, GgmlDevice, GgmlOperator, OperatorInput, WorkerCrash
from perfsuite.measure.shapes.ggml_tolerance import ggml_tolerance
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.measure.shapes.shape_inputs import ShapeInputs
from perfsuite.measure.shapes.shape_references import shape_reference
from perfsuite.workload.shapes.operation_shape import Operation
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

#: A backend's registry in ggml, and what it is called in fingerprints.
_BACKENDS = {Subject.GGML_CPU: ("CPU", "cpu"), Subject.GGML_OPENCL: ("OpenCL", "opencl")}

#: Work of a graph that buries the microseconds which starting one takes.
GRAPH_FLOPS = 2_000_000
#: The most operators of a graph; on a device each is a launch, which costs by itself more than a graph's start.
MOST_COPIES = {Subject.GGML_CPU: 64, Subject.GGML_OPENCL: 8}


class GgmlBench:
    """ggml's operators on one backend."""

    def __init__(self, plan: ShapesPlan, worker: Asked, ready: str) -> None:
        """Measure by a worker that was started with a plan, and said that it is ready."""
        self._subject = Subject(plan.subject)
        self._device = GgmlDevice(worker, ready)
        registry, backend = _BACKENDS[self._subject]
        is_processor = self._subject is Subject.GGML_CPU
        units = plan.n_threads if is_processor else plan.n_compute_units or 1
        what = f"{units} threads" if is_processor else self._device.name
        named = {"engine": plan.engine_build_id, "backend": backend, "device": self._device.name, "units": str(units)}
        self._description = BenchDescription(
            device=f"ggml {registry}, {what}",
            n_compute_units=units,
            fingerprint=(*named.items(), *plan.fingerprint),
        )

    @property
    def description(self) -> BenchDescription:
        return self._description

    def problem(self, case: ShapeCase) -> str | None:
        if case.subject is not self._subject:
            return f"subject {case.subject.value}; expected {self._subject.value}"
        with _told(case):
            return self._device.problem(case.shape)

    def bound(self, case: ShapeCase, *, seed: int) -> GgmlOperation:
        """Draw a case's inputs and place them; `EngineError` where it has a problem, or there is no memory."""
        inputs = ggml_inputs(case.shape, seed=seed)
        # how many operators share the start of a graph is a function of the shape alone, so that shapes compare
        n_copies = max(1, min(MOST_COPIES[self._subject], GRAPH_FLOPS // case.shape.flops))
        with _told(case):
            operator = self._device.operator(case.shape, n_copies=n_copies)
            try:
                for which, content in _contents(inputs):
                    operator.set(which, content)
            except EngineError:
                operator.close()
                raise
        return GgmlOperation(case, inputs, operator, machine=self._device.machine)

    def samples(self, operations: Sequence[GgmlOperation], n_launches: int) -> tuple[int, ...]:
        """Launch operations one after the other, as `ShapeBench`: a share of a graph, its start included."""
        with _told(*(each.case for each in operations)):
            return self._device.times_ns([each.operator for each in operations], n_launches)

    @property
    def memory_bytes(self) -> int:
        """The memory of the machine that it measures on."""
        return self._device.memory_bytes


class GgmlOperation:
    """One of ggml's operators with its inputs in place."""

    def __init__(self, case: ShapeCase, inputs: ShapeInputs, operator: GgmlOperator, *, machine: str) -> None:
        self.case, self.operator = case, operator
        self._inputs, self._machine = inputs, machine

    def verify(self) -> Deviation:
        reference = shape_reference(self._inputs)
        with _told(self.case):
            out = self.operator.output(self.case.shape.n_outputs)
        expected = reference.expected
        return Deviation(
            error_norm=math.inf if out is None else error_norm(out.reshape(expected.shape), expected),
            tolerance=ggml_tolerance(self.case, self._inputs, reference, machine=self._machine),
        )

    def launched_ns(self, most_launches: int, until_ns: int) -> int:
        with _told(self.case):
            return self.operator.launched_ns(most_launches, until_ns)

    def close(self) -> None:
        with _told(self.case):
            self.operator.close()


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
def _told(*cases: ShapeCase) -> Iterator[None]:
    """Name the case at which something failed; each is a step of what is asked."""
    try:
        yield
    except EngineError as error:
        raise EngineError(f"{cases[0].case_id}: {error}") from None
    except WorkerCrash as crash:
        raise ShapeCrashError(cases[min(crash.place, len(cases) - 1)].case_id, crash.how) from None
