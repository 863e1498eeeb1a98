"""Operations with their inputs in place, kept for the next request as far as their bytes allow."""

from __future__ import annotations

import os
import time
from collections import OrderedDict

from perfsuite.errors import PerfsuiteError, ShapeError
from perfsuite.measure.shapes.bench import BoundOperation, ShapeBench
from perfsuite.workload.shapes.shape_case import ShapeCase

#: Bytes of the operands that are kept, an eighth of the memory at most: a bench may hold them twice.
MOST_BYTES = min(4 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8)
#: Operations that are kept.
MOST_OPERATIONS = 1024
#: Two take turns, and one of them is always the newest.
_FEWEST = 2

#: Launches before an operation is timed, fewer where they take longer than this together.
WARM_UP_LAUNCHES = 3
WARM_UP_NS = 2_000_000


class BoundOperations:
    """The operations of a bench, bound and warmed up when they are first asked for; the oldest make room."""

    def __init__(self, bench: ShapeBench, *, seed: int, most_bytes: int = MOST_BYTES) -> None:
        """Keep operands of so many bytes, and always two operations."""
        self._bench, self._seed, self._most_bytes = bench, seed, most_bytes
        self._kept: OrderedDict[ShapeCase, BoundOperation] = OrderedDict()
        self._n_bytes = 0
        self._launch_ns: dict[ShapeCase, int] = {}

    def bound(self, case: ShapeCase) -> BoundOperation:
        """Return a case's operation; `PerfsuiteError` where the bench cannot compute it."""
        if case in self._kept:
            self._kept.move_to_end(case)
            return self._kept[case]
        if problem := self._bench.problem(case):
            raise ShapeError(f"{case.case_id}: {problem}")
        operation = self._placed(case)
        if case in self._launch_ns:  # bound anew: its first launch finds neither operands nor program where they were
            operation.run_ns()
        self._kept[case] = operation
        self._n_bytes += case.shape.moved_bytes
        self._make_room()
        return operation

    def launch_ns(self, case: ShapeCase) -> int:
        """Return what a launch took, waiting included, when the case was warmed up; it is not bound again for that."""
        if case not in self._launch_ns:
            self._launch_ns[case] = _warmed_up_ns(self.bound(case))
        return self._launch_ns[case]

    def close(self) -> None:
        """Give back all buffers."""
        while self._kept:
            self._drop_oldest()

    def _placed(self, case: ShapeCase) -> BoundOperation:
        """Bind a case; where the device refuses, once more with nothing else on it."""
        try:
            return self._bench.bound(case, seed=self._seed)
        except PerfsuiteError:
            if not self._kept:
                raise
        self.close()
        return self._bench.bound(case, seed=self._seed)

    def _make_room(self) -> None:
        while len(self._kept) > _FEWEST and (self._n_bytes > self._most_bytes or len(self._kept) > MOST_OPERATIONS):
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        case, operation = self._kept.popitem(last=False)
        self._n_bytes -= case.shape.moved_bytes
        operation.close()


def _warmed_up_ns(operation: BoundOperation) -> int:
    """Return the fastest of the first launches, after which programs are built and caches filled."""
    times_ns = [_timed_launch_ns(operation)]
    while len(times_ns) < WARM_UP_LAUNCHES and sum(times_ns) < WARM_UP_NS:
        times_ns.append(_timed_launch_ns(operation))
    return min(times_ns)


def _timed_launch_ns(operation: BoundOperation) -> int:
    """Run once by this process's clock: what the operation says of itself may leave out how it was started."""
    start_ns = time.perf_counter_ns()
    operation.run_ns()
    return max(1, time.perf_counter_ns() - start_ns)
