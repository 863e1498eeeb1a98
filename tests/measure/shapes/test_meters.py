"""The meters of a subject: the one that stays, fresh ones, and what is left of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from perfsuite.errors import MeasurementError, ShapeCrashError
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.meter import PairSamples, ShapeMeter
from perfsuite.measure.shapes.meters import ProcessMeters, ShapeSetup, set_up_shapes
from perfsuite.workload.shapes.shape_case import Subject

from .fake_bench import BASE_NS, KILLED, REFUSED, FakeSession, gemv

Start = Callable[[ShapeSetup], FakeSession]


def test_ggml_on_the_processor_runs_as_in_a_calibration(engine: Engine, tmp_path: Path) -> None:
    """The plan names the engine and its build, and gives each thread a processor of its own."""
    plan = ShapesPlan(subject=Subject.GGML_CPU.value, n_threads=2, log_dir="")
    setup = set_up_shapes(plan, LocalBoard(cache_dir=tmp_path), engine)
    assert setup.environment == {}
    assert setup.plan.library_dir == str(engine.library_dir)
    assert setup.plan.engine_build_id == engine.build_id
    assert setup.plan.binds_threads
    assert setup.plan.backend_library is None


@pytest.fixture
def opened() -> list[FakeSession]:
    return []


@pytest.fixture
def start(opened: list[FakeSession]) -> Start:
    def started(_: ShapeSetup) -> FakeSession:
        opened.append(FakeSession(len(opened)))
        return opened[-1]

    return started


@pytest.fixture
def meters(setup: ShapeSetup, start: Start) -> Iterator[ProcessMeters]:
    with closing(ProcessMeters(lambda: setup, start)) as meters:
        yield meters


def number_of(meter: ShapeMeter) -> int:
    return int(dict(meter.description.fingerprint)["session"])


def test_each_method_is_answered(meters: ProcessMeters) -> None:
    meter = meters.resident()
    assert meter.problem(gemv(REFUSED)) == "it has no such kernel"
    assert meter.problem(gemv(1)) is None
    assert not meter.verify(gemv(1)).is_correct
    assert meter.samples(gemv(1), 3) == (BASE_NS + 1,) * 3
    assert meter.pairs(gemv(1), gemv(2), 2) == PairSamples(old_ns=(BASE_NS + 1,) * 2, new_ns=(BASE_NS + 2,) * 2)
    assert meter.round([gemv(n) for n in (5, 3, 4)], order_seed=1) == (BASE_NS + 5, BASE_NS + 3, BASE_NS + 4)
    assert meter.round([gemv(5)], order_seed=1, n_launches=2) == (BASE_NS + 5,)
    assert meter.round([], order_seed=1) == ()


def test_fresh_processes_are_fresh(meters: ProcessMeters, opened: list[FakeSession]) -> None:
    assert meters.resident() is meters.resident()
    numbers = [number_of(meters.resident())]
    for _ in range(2):
        with meters.fresh() as meter:
            meter.verify(gemv(1))
            numbers.append(number_of(meter))
            assert opened[-1].is_open
        assert not opened[-1].is_open
    assert numbers == [0, 1, 2]
    assert number_of(meters.resident()) == 0


def test_the_next_call_after_a_crash_has_a_new_process(meters: ProcessMeters) -> None:
    meter = meters.resident()
    first = number_of(meter)
    with pytest.raises(ShapeCrashError, match=gemv(KILLED).case_id):
        meter.pairs(gemv(1), gemv(KILLED), 3)
    assert meter.samples(gemv(1), 1) == (BASE_NS + 1,)
    assert number_of(meter) != first


def test_nothing_is_left_after_an_exception(setup: ShapeSetup, start: Start, opened: list[FakeSession]) -> None:
    """Whatever ends the context, Ctrl-C too, ends the processes: also one whose user has not ended it."""

    def interrupted() -> None:
        with closing(ProcessMeters(lambda: setup, start)) as meters:
            number_of(meters.resident())
            forgotten = meters.fresh()
            number_of(forgotten.__enter__())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [each.is_open for each in opened] == [False, False]


def test_a_subject_is_set_up_once_and_only_when_it_is_asked(setup: ShapeSetup, start: Start) -> None:
    """Processes share what was found; before the first call, and after the end, nothing is looked for."""
    set_up = Mock(return_value=setup)
    with closing(ProcessMeters(set_up, start)) as meters:
        meter = meters.resident()
        set_up.assert_not_called()
        number_of(meter)
        with meters.fresh() as fresh:
            number_of(fresh)
    with pytest.raises(MeasurementError, match="this meter was closed"):
        meter.problem(gemv(1))
    set_up.assert_called_once_with()
