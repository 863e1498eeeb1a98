"""What this machine follows llama.cpp with is found, and works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.live import Delivery, run_live
from perfsuite.measure.memory_timeline import measure_timeline
from perfsuite.measure.phase_tracer import read_trace, tracer_environment
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.live import LiveEnd, LiveToken

from ..conftest import wait_until


@pytest.fixture
def own_board(tmp_path: Path) -> Iterator[LocalBoard]:
    board = LocalBoard(cache_dir=tmp_path / "cache")
    board.open()
    yield board
    board.close()


def test_phases_are_traced_there_and_read_here(own_board: LocalBoard, small_plan: LlamaPlan, tmp_path: Path) -> None:
    library = own_board.instruments.phase_tracer(own_board.facts().engine)
    (tmp_path / "tracer.so").write_bytes(library.read_bytes())
    environment = tracer_environment(tmp_path / "tracer.so", RUN_FOLDER / "calls")
    own_board.run(small_plan, extra_environment=environment, files=tmp_path / "files")
    assert len(read_trace(tmp_path / "files" / "calls").calls) > small_plan.n_gen


def test_records_are_heard_while_a_run_goes_on(own_board: LocalBoard, small_plan: LlamaPlan) -> None:
    heard: list[Delivery] = []
    payload = run_live(small_plan, heard.append, own_board)
    assert "engine" in payload
    assert sum(isinstance(each.record, LiveToken) for each in heard) == small_plan.n_gen
    assert isinstance(heard[-1].record, LiveEnd)


@pytest.mark.long_but_first
def test_memory_is_watched_beside_a_run(own_board: LocalBoard, small_plan: LlamaPlan) -> None:
    timeline, vram = measure_timeline(replace(small_plan, n_gen=400), own_board)
    assert timeline.peak_rss_bytes > 0
    assert vram.missing == "the run puts no layer on a GPU"


def test_the_engine_says_what_it_was_built_for(own_board: LocalBoard, small_plan: LlamaPlan) -> None:
    assert all(isinstance(each, str) for each in own_board.instruments.cpu_features(small_plan))
    assert own_board.instruments.tensor_layout(own_board.facts().engine).build_id


def test_a_load_ends_with_who_asked_for_it(own_board: LocalBoard) -> None:
    own_board.set_load(1)
    assert wait_until(lambda: len(busy_loops()) == 1)
    own_board.set_load(2)
    assert wait_until(lambda: len(busy_loops()) == 2)
    own_board.set_load(0)
    assert not busy_loops()
    own_board.set_load(1)
    own_board.close()
    assert wait_until(lambda: not busy_loops())


def busy_loops() -> list[int]:
    """Return children of the program, which is a child of this process."""
    return [each.pid for program in psutil.Process().children() for each in program.children()]
