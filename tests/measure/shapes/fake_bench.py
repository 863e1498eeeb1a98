"""A bench whose cases misbehave by their sizes, and a session with it in the place of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perfsuite.errors import OpenClError, ShapeCrashError
from perfsuite.measure.shapes.meter import Answer, BenchDescription, Deviation
from perfsuite.measure.shapes.sampler import Sampler
from perfsuite.workload.shapes.shape_case import ShapeCase

#: Sizes of n at which something happens: to the process when the case runs, to the bench when it is placed.
KILLED, BROKEN, REFUSED, BULKY = 13, 23, 29, 41

#: What a launch takes, but for its n.
BASE_NS = 100_000


def gemv(n: int, k: int = 32) -> ShapeCase:
    return ShapeCase.from_id(f"shape/tiled/gemv/n{n}-k{k}/f32/tile64-vector8")


class FakeOperation:
    """An operation that takes so long as it has rows."""

    def __init__(self, case: ShapeCase, log: list[str]) -> None:
        self._case, self.n, self._log = case, case.shape.of("n"), log
        log.append(f"place {self.n}")

    def verify(self) -> Deviation:
        self.run_ns()
        return Deviation(error_norm=float("inf"), tolerance=1e-3)

    def launched_ns(self, most_launches: int, until_ns: int) -> int:
        """Launch it so often, and say that it took no time."""
        for n_launches in range(most_launches):
            if n_launches and until_ns <= n_launches:
                break
            self.run_ns()
        return 1

    def run_ns(self) -> int:
        self._log.append(f"run {self.n}")
        if self.n == KILLED:
            raise ShapeCrashError(self._case.case_id, "killed")
        return BASE_NS + self.n

    def close(self) -> None:
        self._log.append(f"close {self.n}")


class FakeBench:
    """Places what it is asked for, and remembers in which order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.description = BenchDescription(device="fake", n_compute_units=2, fingerprint=())

    def problem(self, case: ShapeCase) -> str | None:
        return "it has no such kernel" if case.shape.of("n") == REFUSED else None

    def placed(self, case: ShapeCase, *, seed: int) -> FakeOperation:
        """Place a case; one size has no memory at all, another one only beside nothing else."""
        n = case.shape.of("n")
        if n == BROKEN:
            raise OpenClError("clCreateBuffer failed:\nMEM_OBJECT_ALLOCATION_FAILURE")
        if n == BULKY and self._n_placed:
            raise OpenClError("the device is full")
        return FakeOperation(case, self.log)

    def samples(self, operations: Sequence[FakeOperation], n_launches: int) -> Iterator[int]:
        for operation in operations:
            yield min(operation.run_ns() for _ in range(n_launches))

    @property
    def _n_placed(self) -> int:
        return sum(line.startswith("place") - line.startswith("close") for line in self.log)


class FakeSession:
    """`ShapeSession` of a fake bench, with a number by which two of them can be told apart."""

    def __init__(self, number: int) -> None:
        self.description = BenchDescription(device="fake", n_compute_units=2, fingerprint=(("session", str(number)),))
        self.is_open = True
        self._sampler = Sampler(FakeBench(), seed=0)

    def ask(self, question: Callable[..., Answer], cases: Sequence[ShapeCase], /, **how: Any) -> Answer:
        """Answer as a worker does, which has ended with its crash."""
        assert self.is_open
        try:
            return question(self._sampler, cases, **how)
        except ShapeCrashError:
            self.close()
            raise

    def close(self) -> None:
        self.is_open = False
