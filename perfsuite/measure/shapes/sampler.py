"""What is done with a bench: which operations are placed, warmed up and sampled, and in which order.

What a sample of an operation is: several launches in a row, and the fastest of them.

What disturbs a launch only slows it, and the first one after another operation finds its operands out of the caches. An
operation whose edges take a slow path does so at each launch, so that the fastest shows it; and it is steadier than
the mean of the faster half and the median. The fastest lies lower the more launches there are, so all samples that are
compared have equally many: those of one call by themselves, and those of two processes where whoever compares them
says how many.
"""

from __future__ import annotations

import math
import os
import random
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from perfsuite.errors import PerfsuiteError, ShapeCrashError, ShapeError
from perfsuite.measure.board.runs import turn_order
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.workload.shapes.shape_case import ShapeCase

#: What the launches of a sample should take together, waiting included, of the fastest operation that is compared.
LEAST_SAMPLE_NS = 500_000
FEWEST_LAUNCHES = 3
MOST_LAUNCHES = 8
#: What a sample may take on average over the operations that are compared, unless it has a single launch.
MEAN_SAMPLE_NS = 6_000_000

#: Bytes of the operands that are kept, an eighth of the memory at most: a bench may hold them twice.
MOST_BYTES = min(4 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8)
#: Operations that are kept.
MOST_OPERATIONS = 1024
#: Two take turns, and one of them is always the newest.
_FEWEST = 2

#: Launches before an operation is timed, fewer where they take longer than this together.
WARM_UP_LAUNCHES = 3
WARM_UP_NS = 2_000_000

#: By case of a call, ns.
Samples = tuple[tuple[int, ...], ...]


class ShapeBench(Protocol):
    """One subject on one device, by the operations that are placed on it; these are the bench's own."""

    description: BenchDescription

    def problem(self, case: ShapeCase) -> str | None:
        """Return why it cannot compute a case, or None where it can."""

    def placed(self, case: ShapeCase, *, seed: int) -> Any:
        """Draw inputs for a case and place them; `PerfsuiteError` where the device refuses."""

    def samples(self, operations: Sequence[Any], n_launches: int) -> Iterable[int]:
        """Take a sample of one operation after the other, > 0: the shortest of so many launches in a row.

        A launch is what it took on the device's clock where it has one, else on the host's.
        """


def launches_of_a_sample(launch_ns: Sequence[int]) -> int:
    """Return how many launches a sample of each operation has, of those whose launches take so long, waiting included.

    Enough for the fastest, unless all together would take too long.
    """
    wanted = max(FEWEST_LAUNCHES, math.ceil(LEAST_SAMPLE_NS / min(launch_ns)))
    mean_ns = sum(launch_ns) / len(launch_ns)
    return max(1, min(wanted, MOST_LAUNCHES, int(MEAN_SAMPLE_NS / mean_ns)))


class Sampler:
    """Samples operations that are placed and warmed up when they are first asked for; the oldest make room."""

    def __init__(self, bench: ShapeBench, *, seed: int, most_bytes: int = MOST_BYTES) -> None:
        """Keep operands of so many bytes, and always two operations."""
        #: The case with which something is done.
        self.case: ShapeCase | None = None
        self._bench, self._seed, self._most_bytes = bench, seed, most_bytes
        self._kept: OrderedDict[ShapeCase, Any] = OrderedDict()
        self._n_bytes = 0
        self._launch_ns: dict[ShapeCase, int] = {}

    def problem(self, cases: Sequence[ShapeCase]) -> str | None:
        (self.case,) = cases
        return self._bench.problem(self.case)

    def verify(self, cases: Sequence[ShapeCase]) -> Deviation:
        deviation: Deviation = self.operation(cases[0]).verify()
        return deviation

    def samples(self, cases: Sequence[ShapeCase], *, n_samples: int) -> Samples:
        """Take samples of a case; two take turns, ABBA ABBA ...: a steady drift falls out of every two pairs."""
        return self._taken(cases, turn_order(n_samples, 0) if len(cases) > 1 else [0] * n_samples)

    def round(self, cases: Sequence[ShapeCase], *, order_seed: int = 0, n_launches: int | None = None) -> Samples:
        places = list(range(len(cases)))
        random.Random(order_seed).shuffle(places)
        return self._taken(cases, places, n_launches)

    def operation(self, case: ShapeCase) -> Any:
        """Return a case's operation; `PerfsuiteError` where the bench cannot compute it."""
        self.case = case
        if case in self._kept:
            self._kept.move_to_end(case)
            return self._kept[case]
        if problem := self._bench.problem(case):
            raise ShapeError(f"{case.case_id}: {problem}")
        operation = self._placed(case)
        if case in self._launch_ns:  # placed anew: its first launch finds neither operands nor program where they were
            operation.launched_ns(1, 0)
        self._kept[case] = operation
        self._n_bytes += case.shape.moved_bytes
        while len(self._kept) > _FEWEST and (self._n_bytes > self._most_bytes or len(self._kept) > MOST_OPERATIONS):
            self._drop_oldest()
        return operation

    def launch_ns(self, case: ShapeCase) -> int:
        """Return what a launch took, waiting included, when the case was warmed up; it is not placed again for that."""
        if case not in self._launch_ns:
            self._launch_ns[case] = self.operation(case).launched_ns(WARM_UP_LAUNCHES, WARM_UP_NS)
        return self._launch_ns[case]

    def drop_all(self) -> None:
        while self._kept:
            self._drop_oldest()

    def _placed(self, case: ShapeCase) -> Any:
        """Place a case; where the device refuses, once more with nothing else on it."""
        try:
            return self._bench.placed(case, seed=self._seed)
        except ShapeCrashError:
            raise
        except PerfsuiteError:
            if not self._kept:
                raise
        self.drop_all()
        return self._bench.placed(case, seed=self._seed)

    def _drop_oldest(self) -> None:
        case, operation = self._kept.popitem(last=False)
        self._n_bytes -= case.shape.moved_bytes
        operation.close()

    def _taken(self, cases: Sequence[ShapeCase], order: Sequence[int], n_launches: int | None = None) -> Samples:
        """Take a sample at each place of an order; all have equally many launches."""
        launch_ns = [self.launch_ns(case) for case in cases]
        n_launches = n_launches or launches_of_a_sample(launch_ns)
        taken_ns: list[list[int]] = [[] for _ in cases]
        for places in self._kept_together(cases, order):
            operations = [self.operation(cases[place]) for place in places]
            for place, sample_ns in zip(places, self._bench.samples(operations, n_launches), strict=True):
                taken_ns[place].append(sample_ns)
        return tuple(map(tuple, taken_ns))

    def _kept_together(self, cases: Sequence[ShapeCase], order: Sequence[int]) -> Iterator[list[int]]:
        """Cut an order into pieces whose operations are side by side, and place them."""
        piece: list[int] = []
        for place in order:
            if piece and cases[place] not in self._kept:
                yield piece
                piece = []
            self.operation(cases[place])
            piece.append(place)
        if piece:
            yield piece
