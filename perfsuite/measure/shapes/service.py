"""What is asked of a bench, and how it is answered: what is bound, warmed up and sampled, and in which order.

What a sample of an operation is: several launches in a row, and the fastest of them.

What disturbs a launch only slows it, and the first one after another operation finds its operands out of the caches. An
operation whose edges take a slow path does so at each launch, so that the fastest shows it; and it is steadier than
the mean of the faster half and the median. The fastest lies lower the more launches there are, so all samples that are
compared have equally many: those of one request by themselves, and those of two processes where whoever compares them
says how many.
"""

from __future__ import annotations

import math
import os
import random
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Generic

from perfsuite.errors import PerfsuiteError, ShapeCrashError, ShapeError
from perfsuite.measure.board.runs import turn_order
from perfsuite.measure.shapes.meter import Bound, ShapeBench
from perfsuite.measure.shapes.requests import RequestKind, ShapeAnswer, ShapeRequest
from perfsuite.workload.shapes.shape_case import ShapeCase

#: What the launches of a sample should take together, waiting included, of the fastest operation that is compared.
LEAST_SAMPLE_NS = 500_000
FEWEST_LAUNCHES = 3
MOST_LAUNCHES = 8
#: What a sample may take on average over the operations that are compared, unless it has a single launch.
MEAN_SAMPLE_NS = 6_000_000


def launches_of_a_sample(launch_ns: Sequence[int]) -> int:
    """Return how many launches a sample of each operation has, of those whose launches take so long, waiting included.

    Enough for the fastest, unless all together would take too long.
    """
    wanted = max(FEWEST_LAUNCHES, math.ceil(LEAST_SAMPLE_NS / min(launch_ns)))
    mean_ns = sum(launch_ns) / len(launch_ns)
    return max(1, min(wanted, MOST_LAUNCHES, int(MEAN_SAMPLE_NS / mean_ns)))


#: Bytes of the operands that are kept, an eighth of the memory at most: a bench may hold them twice.
MOST_BYTES = min(4 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8)
#: Operations that are kept.
MOST_OPERATIONS = 1024
#: Two take turns, and one of them is always the newest.
_FEWEST = 2

#: Launches before an operation is timed, fewer where they take longer than this together.
WARM_UP_LAUNCHES = 3
WARM_UP_NS = 2_000_000


class BoundOperations(Generic[Bound]):
    """The operations of a bench, bound and warmed up when they are first asked for; the oldest make room."""

    def __init__(self, bench: ShapeBench[Bound], *, seed: int, most_bytes: int = MOST_BYTES) -> None:
        """Keep operands of so many bytes, and always two operations."""
        self._bench, self._seed, self._most_bytes = bench, seed, most_bytes
        self._kept: OrderedDict[ShapeCase, Bound] = OrderedDict()
        self._n_bytes = 0
        self._launch_ns: dict[ShapeCase, int] = {}

    def is_bound(self, case: ShapeCase) -> bool:
        """Whether a case can be asked for without others making room."""
        return case in self._kept

    def bound(self, case: ShapeCase) -> Bound:
        """Return a case's operation; `PerfsuiteError` where the bench cannot compute it."""
        if case in self._kept:
            self._kept.move_to_end(case)
            return self._kept[case]
        if problem := self._bench.problem(case):
            raise ShapeError(f"{case.case_id}: {problem}")
        operation = self._placed(case)
        if case in self._launch_ns:  # bound anew: its first launch finds neither operands nor program where they were
            operation.launched_ns(1, 0)
        self._kept[case] = operation
        self._n_bytes += case.shape.moved_bytes
        while len(self._kept) > _FEWEST and (self._n_bytes > self._most_bytes or len(self._kept) > MOST_OPERATIONS):
            self._drop_oldest()
        return operation

    def launch_ns(self, case: ShapeCase) -> int:
        """Return what a launch took, waiting included, when the case was warmed up; it is not bound again for that."""
        if case not in self._launch_ns:
            self._launch_ns[case] = self.bound(case).launched_ns(WARM_UP_LAUNCHES, WARM_UP_NS)
        return self._launch_ns[case]

    def close(self) -> None:
        while self._kept:
            self._drop_oldest()

    def _placed(self, case: ShapeCase) -> Bound:
        """Bind a case; where the device refuses, once more with nothing else on it."""
        try:
            return self._bench.bound(case, seed=self._seed)
        except ShapeCrashError:
            raise
        except PerfsuiteError:
            if not self._kept:
                raise
        self.close()
        return self._bench.bound(case, seed=self._seed)

    def _drop_oldest(self) -> None:
        case, operation = self._kept.popitem(last=False)
        self._n_bytes -= case.shape.moved_bytes
        operation.close()


class ShapeService:
    """Answers requests with a bench."""

    def __init__(self, bench: ShapeBench[Any], *, seed: int, most_bytes: int = MOST_BYTES) -> None:
        """Keep operands of so many bytes."""
        self._bench = bench
        #: The place of the case with which something is done.
        self._place = 0
        self._operations = BoundOperations(bench, seed=seed, most_bytes=most_bytes)

    def answer(self, request: ShapeRequest) -> ShapeAnswer:
        """Answer a request, also where it cannot be done; `ShapeCrashError` where that ended what measures."""
        self._place = 0
        try:
            cases = [_case(case_id) for case_id in request.case_ids]
            return ShapeAnswer(**_ANSWERS[request.kind](self, cases, request))
        except ShapeCrashError:
            raise
        except (PerfsuiteError, MemoryError) as error:
            return ShapeAnswer(failure=self._failure(request, error))

    def _pairs(self, cases: Sequence[ShapeCase], request: ShapeRequest) -> dict[str, Any]:
        """Let two cases take turns, ABBA ABBA ...: a steady drift falls out of every two pairs."""
        return self._sampled(cases, turn_order(request.n_samples, 0), request)

    def _round(self, cases: Sequence[ShapeCase], request: ShapeRequest) -> dict[str, Any]:
        places = list(range(len(cases)))
        random.Random(request.order_seed).shuffle(places)
        return self._sampled(cases, places, request)

    def _sampled(self, cases: Sequence[ShapeCase], order: Sequence[int], request: ShapeRequest) -> dict[str, Any]:
        """Take a sample at each place of an order; all have equally many launches."""
        launch_ns = [self._launch_ns(cases, place) for place in range(len(cases))]
        n_launches = request.n_launches or launches_of_a_sample(launch_ns)
        taken_ns: list[list[int]] = [[] for _ in cases]
        for places in self._kept_together(cases, order):
            samples = iter(self._bench.samples([self._bound(cases, place) for place in places], n_launches))
            for place in places:
                self._place = place
                taken_ns[place].append(next(samples))
        return {"samples_ns": tuple(tuple(each) for each in taken_ns)}

    def _kept_together(self, cases: Sequence[ShapeCase], order: Sequence[int]) -> Iterator[list[int]]:
        """Cut an order into pieces whose operations are bound side by side, and bind them."""
        piece: list[int] = []
        for place in order:
            if piece and not self._operations.is_bound(cases[place]):
                yield piece
                piece = []
            self._bound(cases, place)
            piece.append(place)
        if piece:
            yield piece

    def _bound(self, cases: Sequence[ShapeCase], place: int) -> Any:
        self._place = place
        return self._operations.bound(cases[place])

    def _launch_ns(self, cases: Sequence[ShapeCase], place: int) -> int:
        self._place = place
        return self._operations.launch_ns(cases[place])

    def _failure(self, request: ShapeRequest, error: Exception) -> str:
        case_id = request.case_ids[self._place]
        text = str(error) or type(error).__name__
        return text if case_id in text else f"{case_id}: {text}"


_Answer = Callable[[ShapeService, Sequence[ShapeCase], ShapeRequest], dict[str, Any]]

_ANSWERS: dict[RequestKind, _Answer] = {
    RequestKind.PROBLEM: lambda service, cases, _: {"problem": service._bench.problem(cases[0])},
    RequestKind.VERIFY: lambda service, cases, _: {"deviation": service._bound(cases, 0).verify()},
    RequestKind.SAMPLES: lambda service, cases, asked: service._sampled(cases, [0] * asked.n_samples, asked),
    RequestKind.PAIRS: ShapeService._pairs,
    RequestKind.ROUND: ShapeService._round,
}

_case = lru_cache(16384)(ShapeCase.from_id)
