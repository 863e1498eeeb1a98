"""The loop of the process that measures shapes: a request a line, an answer a line, until nobody asks any more."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TextIO

from perfsuite.errors import PerfsuiteError
from perfsuite.measure.shapes.bench import BoundOperation, ShapeBench
from perfsuite.measure.shapes.bound_operations import BoundOperations
from perfsuite.measure.shapes.progress import ProgressMark
from perfsuite.measure.shapes.requests import RequestKind, ShapeAnswer, ShapeRequest
from perfsuite.measure.shapes.sampling import launches_of_a_sample, sample_ns
from perfsuite.workload.shapes.shape_case import ShapeCase

_PARSED_IDS = 16384


def serve(bench: ShapeBench, *, seed: int, requests: TextIO, answers: TextIO, mark: ProgressMark) -> int:
    """Describe the bench, answer every request, and return how many there were.

    A `PerfsuiteError` at a case is an answer; a line that is no request ends the service with one.
    """
    service = ShapeService(bench, seed=seed, mark=mark)
    _say(answers, ShapeAnswer(number=0, description=bench.description))
    n_answers = 0
    for line in iter(requests.readline, ""):
        _say(answers, service.answer(ShapeRequest.from_line(line)))
        n_answers += 1
    service.close()
    return n_answers


def _say(answers: TextIO, answer: ShapeAnswer) -> None:
    """Begin a line of its own: a library may have left one that has no end."""
    answers.write(f"\n{answer.to_line()}\n")
    answers.flush()


class ShapeService:
    """Answers requests with a bench."""

    def __init__(self, bench: ShapeBench, *, seed: int, mark: ProgressMark) -> None:
        """Bind nothing yet."""
        self._bench, self._mark = bench, mark
        self._operations = BoundOperations(bench, seed=seed)

    def answer(self, request: ShapeRequest) -> ShapeAnswer:
        """Return the answer to a request."""
        self._mark.step(0)
        try:
            cases = [_case(case_id) for case_id in request.case_ids]
            return ShapeAnswer(number=request.number, **_ANSWERS[request.kind](self, cases, request))
        except (PerfsuiteError, MemoryError) as error:
            return ShapeAnswer(number=request.number, failure=self._failure(request, error))

    def close(self) -> None:
        """Give back all buffers."""
        self._operations.close()

    def _pairs(self, cases: Sequence[ShapeCase], request: ShapeRequest) -> dict[str, Any]:
        """Let two cases take turns, ABBA ABBA ...: a steady drift falls out of every two pairs."""
        order = (0, 1, 1, 0) * ((request.n_samples + 1) // 2)
        return self._sampled(cases, order[: 2 * request.n_samples], request)

    def _round(self, cases: Sequence[ShapeCase], request: ShapeRequest) -> dict[str, Any]:
        places = list(range(len(cases)))
        random.Random(request.order_seed).shuffle(places)
        return self._sampled(cases, places, request)

    def _sampled(self, cases: Sequence[ShapeCase], order: Sequence[int], request: ShapeRequest) -> dict[str, Any]:
        """Take a sample at each place of an order; all have equally many launches."""
        launch_ns = [self._launch_ns(cases, place) for place in range(len(cases))]
        n_launches = request.n_launches or launches_of_a_sample(launch_ns)
        taken_ns: list[list[int]] = [[] for _ in cases]
        for place in order:
            taken_ns[place].append(sample_ns(self._bound(cases, place), n_launches))
        return {"samples_ns": tuple(tuple(each) for each in taken_ns)}

    def _bound(self, cases: Sequence[ShapeCase], place: int) -> BoundOperation:
        self._mark.step(place)
        return self._operations.bound(cases[place])

    def _launch_ns(self, cases: Sequence[ShapeCase], place: int) -> int:
        self._mark.step(place)
        return self._operations.launch_ns(cases[place])

    def _failure(self, request: ShapeRequest, error: Exception) -> str:
        """Say what went wrong, and at which case."""
        case_id = request.case_ids[self._mark.read()[1]]
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

_case = lru_cache(_PARSED_IDS)(ShapeCase.from_id)
