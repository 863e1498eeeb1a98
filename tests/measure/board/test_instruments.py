"""What a board follows llama.cpp with is found there, and what it lacks is reported with its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.measure.board.instruments import answered_instrument, on_board
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.live import Delivery, run_live
from perfsuite.measure.memory_timeline import measure_timeline
from perfsuite.measure.phase_tracer import read_trace, tracer_environment
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.live import LiveEnd, LiveToken

from ..conftest import wait_until
from .conftest import BoardHome


@pytest.fixture
def home(tmp_path: Path) -> BoardHome:
    """Return a board's folder with the suite in Python in it."""
    found = BoardHome(folder=tmp_path / "home with 'quotes'")
    found.folder.mkdir()
    found.install()
    return found


@pytest.fixture(params=["local", "linked"])
def board(request: pytest.FixtureRequest, home: BoardHome, tmp_path: Path) -> Iterator[Board]:
    """Give this machine, or the same one at the end of a link."""
    found: Board = LocalBoard(cache_dir=tmp_path / "cache") if request.param == "local" else home.board()
    found.open()
    yield found
    found.close()


def test_phases_are_traced_there_and_read_here(board: Board, small_plan: LlamaPlan, tmp_path: Path) -> None:
    """The tracer is built there, is preloaded there, and its calls are read at the desk."""
    library = board.instruments.phase_tracer(board.facts().engine)
    (tmp_path / "tracer.so").write_bytes(library.read_bytes())  # the board's home has a space in it
    environment = tracer_environment(tmp_path / "tracer.so", RUN_FOLDER / "calls")
    board.run(small_plan, extra_environment=environment, files=tmp_path / "files")
    assert len(read_trace(tmp_path / "files" / "calls").calls) > small_plan.n_gen


def test_records_are_heard_while_a_run_goes_on(board: Board, small_plan: LlamaPlan) -> None:
    heard: list[Delivery] = []
    payload = run_live(small_plan, heard.append, board)
    assert "engine" in payload
    assert sum(isinstance(each.record, LiveToken) for each in heard) == small_plan.n_gen
    assert isinstance(heard[-1].record, LiveEnd)


def test_memory_is_watched_beside_a_run(board: Board, small_plan: LlamaPlan) -> None:
    timeline, vram = measure_timeline(replace(small_plan, n_gen=400), board)
    assert timeline.peak_rss_bytes > 0
    assert vram.missing == "the run puts no layer on a GPU"


def test_the_engine_says_what_it_was_built_for(board: Board, small_plan: LlamaPlan) -> None:
    """Features of the processor, and where its tensors have their fields."""
    assert all(isinstance(each, str) for each in board.instruments.cpu_features(small_plan))
    assert board.instruments.tensor_layout(board.facts().engine).build_id


def test_a_load_ends_with_who_asked_for_it(board: Board) -> None:
    """It is begun, made another, and ended; nothing of it is left."""
    board.set_load(1)
    assert wait_until(lambda: len(busy_loops()) == 1)
    board.set_load(2)
    assert wait_until(lambda: len(busy_loops()) == 2)
    board.set_load(0)
    assert not busy_loops()
    board.set_load(1)
    board.close()
    assert wait_until(lambda: not busy_loops())


def busy_loops() -> list[int]:
    """Return the processes below this one that only keep a processor busy."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.cmdline()[-1:] == ["while True: pass"]:
                found.append(process.pid)
    return found


def test_what_a_board_lacks_is_told_with_its_name(home: BoardHome) -> None:
    """The board's own words stand behind its name."""
    linked = home.board()
    linked.open()
    try:
        with pytest.raises(PerfsuiteError, match=r"^board: OpenCL: "):
            linked.instruments.opencl_backend(linked.facts().engine, "no platform has this name")
    finally:
        linked.close()
    assert str(on_board("rubikpi", MeasurementError("no CAP_BPF"))) == "rubikpi: no CAP_BPF"


def test_an_instrument_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="'hammer'; known are opencl_backend, tracing_layer"):
        answered_instrument(LocalBoard(cache_dir=tmp_path).instruments, {"name": "hammer"})
