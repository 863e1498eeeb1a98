"""Shapes on a board: launched there, by the native worker, and judged here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError, ShapeCrashError
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.engine import find_engine
from perfsuite.measure.launch import READY_MARK
from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.meter import ShapeMeter
from perfsuite.measure.shapes.meters import ShapeSetup, open_meters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

from ..conftest import is_gone, wait_until
from .conftest import BoardHome

GEMV = ShapeCase.from_id("shape/ggml-cpu/gemv/n65-k64/q8_0")
PADDED = ShapeCase.from_id("shape/ggml-cpu/gemv/n96-k64/q8_0")
ATTENTION = ShapeCase.from_id("shape/ggml-cpu/attention/heads4-kvheads2-head32-context33/f16")
#: More than a line holds, to it and back: an input of 1 MiB, an output of 64 KiB.
LARGE = ShapeCase.from_id("shape/ggml-cpu/gemm/m64-n256-k1024/f32")

READY = f"echo '{READY_MARK} done aarch64 8000000000 A processor'"


@contextmanager
def opened(board: RemoteBoard, limit_s: float = 60.0) -> Iterator[ShapeMeter]:
    board.open()
    options = {"log_dir": Path("logs"), "n_threads": 1, "limit_s": limit_s}
    with open_meters(Subject.GGML_CPU, board, **options) as meters:  # type: ignore[arg-type]
        yield meters.resident()


def test_a_board_measures_shapes(home: BoardHome, board: RemoteBoard, engine_cache: Path) -> None:
    home.bring_libraries(engine_cache)
    with opened(board) as meter:
        assert meter.description.device == "ggml CPU, 1 threads"
        assert dict(meter.description.fingerprint)["engine"] == find_engine().build_id
        for case in (GEMV, ATTENTION, LARGE):
            assert meter.problem(case) is None
            assert meter.verify(case).is_correct
        assert len(meter.samples(GEMV, 3)) == 3
        pairs = meter.pairs(GEMV, PADDED, 4)
        assert min(pairs.old_ns + pairs.new_ns) > 0
        assert len(pairs.old_ns) == len(pairs.new_ns) == 4
        assert min(meter.round((GEMV, PADDED, ATTENTION), order_seed=1)) > 0
        with pytest.raises(MeasurementError, match="subject ggml-opencl; expected ggml-cpu"):
            meter.verify(ShapeCase.from_id("shape/ggml-opencl/gemv/n1-k32/q8_0"))


@pytest.fixture
def bundled_board(bundled: BoardHome) -> Iterator[RemoteBoard]:
    with closing(bundled.board()) as board:
        yield board


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("read line; kill -SEGV $$", "the worker for 'shapes' was killed by SIGSEGV: "),
        ("read line; echo 'assertion failed: k < 32'; exit 3", r"wrote no record: assertion failed: k < 32"),
        (
            f"read line; echo last; echo '{READY_MARK} crashed 0 signal 6'",
            "the worker for 'shapes' was killed by SIGABRT: last",
        ),
        (f"read line; echo '{READY_MARK} crashed 0 hung'", "the measuring process hung for 60 s"),
    ],
)
def test_a_crash_there_is_the_fault_of_its_shape(
    bundled: BoardHome, bundled_board: RemoteBoard, script: str, how: str
) -> None:
    bundled.install(f"echo $$ >> {bundled.folder}/pids; {READY}; {script}")
    with opened(bundled_board) as meter:
        for n_started in (1, 2):
            with pytest.raises(ShapeCrashError, match=f"^{GEMV.case_id}: .*{how}"):
                meter.problem(GEMV)
            pids = [int(each) for each in (bundled.folder / "pids").read_text().split()]
            assert len(pids) == n_started
            assert wait_until(lambda: all(map(is_gone, pids)))  # noqa: B023 - called here


def test_the_shape_of_a_round_that_crashed_is_named(bundled: BoardHome, bundled_board: RemoteBoard) -> None:
    """The worker says at which step it died; what it was asked for is known here."""
    answers = "".join(f"read line; echo '{READY_MARK} done {each}'\n" for each in ("", "1"))
    one = f"{answers} read part; read set; echo '{READY_MARK} done'; read part; read set; echo '{READY_MARK} done'\n"
    launches = f"read line; echo '{READY_MARK} done 1000'\n"
    bundled.install(f"{READY}\n{one}{launches}{one}{launches}read line; echo '{READY_MARK} crashed 1 signal 11'")
    with opened(bundled_board) as meter:
        with pytest.raises(ShapeCrashError) as caught:
            meter.pairs(GEMV, PADDED, 2)
        assert caught.value.case_id == PADDED.case_id


def test_the_end_of_a_board_ends_its_shapes(bundled: BoardHome, bundled_board: RemoteBoard) -> None:
    """A desk that leaves takes along what it has started, whatever that does."""
    bundled.install(f"echo $$ > {bundled.folder}/pid; {READY}; exec sleep 600")
    bundled_board.open()
    plan = ShapesPlan(subject=Subject.GGML_CPU.value, n_threads=1, log_dir="", library_dir="/engine")
    session = bundled_board.start_shapes(ShapeSetup(plan=plan, environment={}), limit_s=60.0)
    assert session.description.n_compute_units == 1
    bundled_board.close()
    assert wait_until(lambda: is_gone(int((bundled.folder / "pid").read_text())))
