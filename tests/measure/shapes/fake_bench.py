"""A bench whose cases misbehave by their sizes, and a worker with it in the place of a real one."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence

from perfsuite.errors import OpenClError
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.workload.shapes.shape_case import ShapeCase

#: Sizes of n at which something happens: to the process when the case runs, to the bench when it is bound.
KILLED, HANGING, LEAVING, BROKEN, REFUSED, CHATTY, BULKY = 13, 17, 19, 23, 29, 37, 41

#: What a launch takes, but for its n.
BASE_NS = 100_000


def gemv(n: int, k: int = 32) -> ShapeCase:
    return ShapeCase.from_id(f"shape/tiled/gemv/n{n}-k{k}/f32/tile64-vector8")


class FakeOperation:
    """An operation that takes so long as it has rows."""

    def __init__(self, case: ShapeCase, log: list[str]) -> None:
        self.n, self._log = case.shape.of("n"), log
        log.append(f"bind {self.n}")

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
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.n == HANGING:
            time.sleep(600)
        if self.n == LEAVING:
            sys.exit("the driver gives up")
        if self.n == CHATTY:
            print("no end of line", end="", flush=True)
        return BASE_NS + self.n

    def close(self) -> None:
        self._log.append(f"close {self.n}")


class FakeBench:
    """Binds what it is asked for, and remembers in which order."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @property
    def description(self) -> BenchDescription:
        """Name the process, so that two of them can be told apart."""
        return BenchDescription(device="fake", n_compute_units=2, fingerprint=(("pid", str(os.getpid())),))

    def problem(self, case: ShapeCase) -> str | None:
        return "it has no such kernel" if case.shape.of("n") == REFUSED else None

    def bound(self, case: ShapeCase, *, seed: int) -> FakeOperation:
        """Bind a case; one size has no memory at all, another one only beside nothing else."""
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
        return sum(line.startswith("bind") - line.startswith("close") for line in self.log)


def fake_worker(arguments: list[str]) -> int:
    from perfsuite.measure import opencl_platform, worker
    from perfsuite.measure.shapes import tiled_bench

    tiled_bench.TiledBench = lambda *_, **__: FakeBench()  # type: ignore[misc, assignment]
    opencl_platform.choose_device = lambda _: None  # type: ignore[assignment, return-value]
    return worker.main(arguments)


if __name__ == "__main__":
    sys.exit(fake_worker(sys.argv[1:]))
