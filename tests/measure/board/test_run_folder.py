"""What a run leaves lies where it is wanted afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import LinkError, MeasurementError
from perfsuite.measure.board import run_folder
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.run_folder import RUN_FOLDER, file_within, within_limit
from perfsuite.measure.plan import IndependentPlan

PLAN = IndependentPlan(n_threads=1, working_set_bytes=10**5, budget_ms=20)

#: Before NumPy is loaded: leaves a file of as many bytes as a variable says, and one in a folder below.
_LEAVES = """
import os, pathlib
left = pathlib.Path(os.environ["LEFT_IN"])
(left / "below").mkdir()
(left / "below" / "small").write_bytes(b"small")
(left / "large").write_bytes(os.urandom(int(os.environ["LARGE_BYTES"])))
(left / "link").symlink_to("large")
"""


@pytest.mark.long_but_first
@pytest.mark.parametrize("n_bytes", [0, 1000])
def test_what_a_run_leaves_comes_back(tmp_path: Path, n_bytes: int) -> None:
    """Files of any size, of folders as well, lie where they are wanted; links do not."""
    (tmp_path / "sitecustomize.py").write_text(_LEAVES)
    environment = {"PYTHONPATH": f"{tmp_path}:{Path.cwd()}", "LEFT_IN": str(RUN_FOLDER), "LARGE_BYTES": str(n_bytes)}
    payload = LocalBoard(cache_dir=tmp_path / "cache").run(
        PLAN, extra_environment=environment, files=tmp_path / "files"
    )
    assert set(payload) == {"rates", "contention"}
    assert (tmp_path / "files" / "below" / "small").read_bytes() == b"small"
    assert (tmp_path / "files" / "large").stat().st_size == n_bytes


@pytest.mark.long_but_first
def test_a_folder_that_nobody_wants_is_gone(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        _LEAVES + f"pathlib.Path({str(tmp_path / 'told')!r}).write_text(str(left))"
    )
    environment = {"PYTHONPATH": f"{tmp_path}:{Path.cwd()}", "LEFT_IN": str(RUN_FOLDER), "LARGE_BYTES": "1"}
    LocalBoard(cache_dir=tmp_path / "cache").run(PLAN, extra_environment=environment)
    assert not Path((tmp_path / "told").read_text()).exists()


def test_more_than_anybody_reads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert within_limit((("log", 3),)) == (("log", 3),)
    monkeypatch.setattr(run_folder, "FILES_LIMIT_BYTES", 2)
    with pytest.raises(MeasurementError, match=r"have 3 bytes \(limit 2\); record less"):
        within_limit((("log", 3),))


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a\0b"])
def test_a_name_that_leads_elsewhere_is_garbage(tmp_path: Path, name: str) -> None:
    """No answer of a board writes outside of the folder that its files are for."""
    with pytest.raises(LinkError, match="not a name of a file in the folder of a run: garbage"):
        file_within(tmp_path, name)
