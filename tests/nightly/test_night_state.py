"""The file of a night."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import LockedError, PerfsuiteError
from perfsuite.nightly import night_state
from perfsuite.nightly.cell_end import CellEnd, Ending
from perfsuite.nightly.night_state import (
    STATE_NAME,
    NightOrigin,
    held_night,
    last_night,
    new_night,
    read_state,
    write_state,
)

from .conftest import ORIGIN, cells, plan_of

PLAN = plan_of(*cells("host", "a", "b"))


def test_each_night_has_a_folder_and_latest_leads_to_the_last(tmp_path: Path) -> None:
    """Two that begin within a second do not share one; there is one as soon as its state is; no more is left."""
    nights = [new_night(tmp_path, PLAN, ORIGIN) for _ in range(3)]
    assert {*tmp_path.iterdir()} == {*nights, tmp_path / "latest"}
    assert (tmp_path / "latest").resolve() == nights[-1].resolve()
    assert last_night(tmp_path) == nights[-1]
    assert read_state(nights[-1], PLAN, ORIGIN) == {}


def test_one_process_is_at_a_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night_state, "_ENDING_LIMIT_S", 0.1)
    with held_night(tmp_path), pytest.raises(LockedError, match="is at this night"), held_night(tmp_path):
        pass
    with held_night(tmp_path):
        pass


def test_a_folder_that_is_called_latest_is_left_alone(tmp_path: Path) -> None:
    """It is reported before a night is made; so is a file in a night's way."""
    (tmp_path / "latest").mkdir()
    with pytest.raises(PerfsuiteError, match="latest: is not a link of a night's; move it away"):
        new_night(tmp_path, PLAN, ORIGIN)
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]
    (tmp_path / "file").touch()
    with pytest.raises(PerfsuiteError, match=r"no night can be made there \(File exists\); choose another --output"):
        new_night(tmp_path / "file", PLAN, ORIGIN)


ENDS = {"host/a-siso": CellEnd(ending=Ending.FAILED, exit_code=1, seconds=2.5, n_cases={"slow": 1})}


RUN = '{"schema": 1, "cases": [{"id": "phase/a", "outcome": "pass"}]}'


def write_night(folder: Path) -> None:
    write_state(folder, PLAN, ENDS, ORIGIN)
    (folder / "host/a-siso").mkdir(parents=True)
    (folder / "host/a-siso/run.json").write_text(RUN)


def test_a_night_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Each cell that ended is there with all that is known of it; what is no state is one line with the remedy."""
    write_night(tmp_path)
    assert read_state(tmp_path, PLAN, ORIGIN) == ENDS
    (tmp_path / STATE_NAME).write_text("{")
    with pytest.raises(PerfsuiteError, match="without --resume"):
        read_state(tmp_path, PLAN, ORIGIN)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (cells("host", "a"), "host/b-siso is gone"),
        (cells("host", "a", "b", "c"), "host/c-siso is new"),
        (
            cells("host", "a", "b", arguments=("--x",)),
            "host/a-siso was --perf-device=host --perf-model=a --perf-scenario=siso, is",
        ),
    ],
)
def test_a_changed_plan_is_refused_with_the_first_difference(
    tmp_path: Path, changed: tuple[object, ...], told: str
) -> None:
    """Cells that are gone, new or different are named."""
    write_night(tmp_path)
    with pytest.raises(PerfsuiteError, match=told):
        read_state(tmp_path, plan_of(*changed), ORIGIN)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        (
            NightOrigin(commit="1" * 40, suite_version="1"),
            "began at commit 000000000000, and the working tree is at 111",
        ),
        (NightOrigin(commit=None, suite_version="1"), "the working tree is at none; check that one out"),
        (NightOrigin(commit="0" * 40, suite_version="2"), "began with perfsuite 1, and this is 2; install that one"),
    ],
)
def test_a_night_of_another_commit_or_version_is_refused(tmp_path: Path, origin: NightOrigin, told: str) -> None:
    """Half a night of one and half of another can be compared with nothing."""
    write_night(tmp_path)
    with pytest.raises(PerfsuiteError, match=told):
        read_state(tmp_path, PLAN, origin)


@pytest.mark.parametrize("text", [None, "{"])
def test_a_cell_whose_run_cannot_be_read_is_not_finished(tmp_path: Path, text: str | None) -> None:
    """A run that was taken away, or half of one, is measured again."""
    write_night(tmp_path)
    path = tmp_path / "host/a-siso/run.json"
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert read_state(tmp_path, PLAN, ORIGIN) == {}
