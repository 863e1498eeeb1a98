"""What a run leaves on a board lies at the desk afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.program_files import PIECE_BYTES
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.plan import ProbePlan, dump_record, load_plan

from .conftest import BoardHome

PLAN = ProbePlan(cache_dir=f"{RUN_FOLDER}/x", n_threads=1, budget_ms=1)
LEFT_IN = {"LEFT_IN": str(RUN_FOLDER)}

#: What every stand-in for a worker does in the end.
DONE = 'cp "$(dirname "$0")/record" "$last"'


@pytest.fixture
def home(bundled: BoardHome) -> BoardHome:
    (bundled.folder / "record").write_bytes(dump_record("probes", {}))
    return bundled


def test_what_a_run_leaves_comes_back(home: BoardHome, board: RemoteBoard, tmp_path: Path) -> None:
    """Files of any size, of folders as well, lie where they are wanted; links do not, and plans know the folder."""
    n_bytes = 2 * PIECE_BYTES + 1
    home.install(
        'cd "$LEFT_IN"; mkdir below; printf small > below/small; ln -s /etc/passwd link; ln -s /etc linked; '
        f'mkfifo pipe; truncate -s {n_bytes} large; : > empty; pwd > where; cp "$plan" plan; {DONE}'
    )
    assert board.run(PLAN, extra_environment=LEFT_IN, files=tmp_path / "files") == {}
    left = {path.relative_to(tmp_path / "files"): path for path in (tmp_path / "files").rglob("*") if path.is_file()}
    assert set(map(str, left)) == {"below/small", "large", "empty", "where", "plan"}
    assert (left[Path("below/small")].read_bytes(), left[Path("empty")].read_bytes()) == (b"small", b"")
    assert left[Path("large")].read_bytes() == bytes(n_bytes)
    there = left[Path("where")].read_text().strip()
    assert load_plan(left[Path("plan")].read_bytes()) == replace(PLAN, cache_dir=f"{there}/x")
    assert Path(there).is_dir()
    board.close()
    assert not Path(there).exists()


def test_a_folder_is_gone_with_the_next_run(home: BoardHome, board: RemoteBoard, tmp_path: Path) -> None:
    home.install(f'echo "$LEFT_IN" >> "$(dirname "$0")/told"; [ -d "$LEFT_IN" ] && {DONE}')
    for files in (None, tmp_path / "files", None):
        board.run(PLAN, extra_environment=LEFT_IN, files=files)
        assert list((home.folder / "cache" / "perfsuite" / "work").iterdir()) == [] or files is not None
    assert len(set((home.folder / "told").read_text().split())) == 3
    with pytest.raises(MeasurementError, match=r"the files of the run are gone; run again"):
        asked(board, "file", name="x", offset=0, most_bytes=1)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../told", "below/../../told", "link", "linked/passwd", "a\0b"])
def test_no_file_elsewhere_is_told(home: BoardHome, board: RemoteBoard, tmp_path: Path, name: str) -> None:
    home.install(f'cd "$LEFT_IN"; ln -s /etc/passwd link; ln -s /etc linked; : > ../told; {DONE}')
    board.run(PLAN, extra_environment=LEFT_IN, files=tmp_path / "files")
    with pytest.raises(MeasurementError, match=r"is not a name of a file in the folder of a run|cannot be read \("):
        asked(board, "file", name=name, offset=0, most_bytes=1)


def asked(board: RemoteBoard, kind: str, **arguments: Any) -> Any:
    return board.program.ask(kind, arguments)
