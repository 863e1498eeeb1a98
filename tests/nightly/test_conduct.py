"""Nights whose pytest is a stub: the order of the cells, what is tried again, limits, and farms."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from perfsuite.nightly.cell_end import LOG_NAME, CellEnd, Ending
from perfsuite.nightly.conduct import Night, RunningCell
from perfsuite.nightly.night_state import read_state

from ..farm_daemons import awaited, running_farm
from .conftest import ORIGIN, RunNight, cells, plan_of


def starts(folder: Path) -> list[str]:
    return [line.split()[1] for line in (folder / "starts").read_text().splitlines()]


def spans(folder: Path) -> list[tuple[float, float]]:
    """When each run had its board, the first first."""
    lines = (folder / "times").read_text().splitlines()
    return sorted((float(line.split()[0]), float(line.split()[1])) for line in lines)


def overlap(pairs: list[tuple[float, float]]) -> bool:
    return any(begin < end for (_, end), (begin, _) in pairwise(pairs))


def test_the_cells_of_a_board_are_run_one_after_the_other(tmp_path: Path, run_night: RunNight) -> None:
    """In the order of the plan, and never two at a time."""
    ends = run_night(plan_of(*cells("host", "passes", "fails", "slow")))
    assert starts(tmp_path) == ["passes", "fails", "slow"]
    assert not overlap(spans(tmp_path))
    assert [end.ending for end in ends.values()] == [Ending.MEASURED, Ending.FAILED, Ending.MEASURED]
    assert ends["host/fails-siso"].n_cases == {"regressed": 1}


def test_a_device_under_two_names_is_measured_once_at_a_time(tmp_path: Path, run_night: RunNight) -> None:
    """What two boards of a plan lead to is one lane; two devices are at work at the same time."""
    one = cells("host", "slow", "slow2", board="one")
    ends = run_night(plan_of(*one, *cells("desk", "slow", board="two", lane="host")))
    assert len(spans(tmp_path)) == 3
    assert not overlap(spans(tmp_path))
    assert all(end.is_finished for end in ends.values())
    run_night(plan_of(*cells("first", "slow"), *cells("second", "slow")))
    assert overlap(spans(tmp_path)[3:])


def test_what_broke_is_tried_again_once_at_the_end(tmp_path: Path, run_night: RunNight) -> None:
    """A cell that recovers is measured the second time; one that does not is reported with its reason."""
    ends = run_night(plan_of(*cells("host", "mends", "breaks", "passes")))
    assert starts(tmp_path) == ["mends", "breaks", "passes", "mends", "breaks"]
    assert ends["host/mends-siso"].ending is Ending.MEASURED
    assert ends["host/breaks-siso"].ending is Ending.BROKEN
    assert ends["host/breaks-siso"].why == "ssh board: the link was lost"
    assert (tmp_path / "night/host/mends-siso.attempt-1/pytest.log").exists()


def test_a_finished_cell_is_not_measured_again(tmp_path: Path, run_night: RunNight) -> None:
    plan = plan_of(*cells("host", "passes", "fails", "breaks"))
    known = run_night(plan)
    (tmp_path / "starts").unlink()
    assert run_night(plan, known)["host/passes-siso"] == known["host/passes-siso"]
    assert starts(tmp_path) == ["breaks", "breaks"]


def test_a_cell_that_takes_too_long_is_ended_and_told(run_night: RunNight) -> None:
    """The next of its board is run all the same; one that says that it waits for a lock has time for that."""
    ends = run_night(plan_of(*cells("host", "hangs", "passes"), *cells("two", "waits"), cell_limit_s=2, wait_s=10))
    assert ends["host/hangs-siso"].why == "took longer than its limit of 2 s"
    assert ends["host/hangs-siso"].exit_code is None
    assert ends["host/passes-siso"].is_finished
    assert ends["two/waits-siso"].ending is Ending.MEASURED


def test_a_night_that_takes_too_long_begins_no_more_cells(run_night: RunNight) -> None:
    """What was begun is ended, and what was not is left for another time."""
    began_s = time.monotonic()
    ends = run_night(plan_of(*cells("host", "hangs", "passes"), night_limit_s=2))
    assert list(ends) == ["host/hangs-siso"]
    assert ends["host/hangs-siso"].why == "the night's limit of 2 s had passed"
    assert time.monotonic() - began_s < 30


@pytest.mark.long
def test_nights_contend_for_a_board_of_a_farm(tmp_path: Path, run_night: RunNight) -> None:
    """Two lanes on one board come one after the other; with two boards they are side by side; all is given back."""
    with running_farm(tmp_path) as farm:
        single = farm.add_board("single")
        pool = [farm.add_board("pool"), farm.add_board("pool")]
        where = (f"--farm={farm.coordinator}",)
        ends = run_night(plan_of(*cells("single", "slow", "slow2", arguments=where), at_once=2))
        assert all(end.is_finished for end in ends.values())
        assert not overlap(spans(tmp_path))
        (tmp_path / "times").unlink()
        ends = run_night(plan_of(*cells("pool", "slow", "slow2", arguments=where), at_once=2))
        assert all(end.is_finished for end in ends.values())
        assert overlap(spans(tmp_path))
        assert {end.place for end in ends.values()} == set(pool)
        assert all(map(farm.is_free, [single, *pool]))


@pytest.mark.long
def test_waiting_for_a_board_is_not_held_against_a_cell(tmp_path: Path, run_night: RunNight) -> None:
    """Its limit counts from the board on, however long others had that."""
    with running_farm(tmp_path) as farm:
        place = farm.add_board("busy")
        alice = farm.client("alice")
        alice.call("-p", place, "acquire")
        freed = threading.Timer(9.0, alice.call, ("-p", place, "release"))
        freed.start()
        where = (f"--farm={farm.coordinator}",)
        began_s = time.monotonic()
        ends = run_night(plan_of(*cells("busy", "passes", arguments=where), cell_limit_s=6))
        freed.join()
        assert time.monotonic() - began_s > 9
        assert starts(tmp_path) == ["passes"]
        assert ends["busy/passes-siso"].ending is Ending.MEASURED


@pytest.mark.long
def test_a_board_that_loses_its_link_is_set_aside_for_the_night(tmp_path: Path, run_night: RunNight) -> None:
    """It breaks one cell, which is measured on another board of the pool the second time, as are all others."""
    with running_farm(tmp_path) as farm:
        pool = {farm.add_board("pool"), farm.add_board("pool")}
        where = (f"--farm={farm.coordinator}",)
        ends = run_night(plan_of(*cells("pool", "loses1", "loses2", "loses3", arguments=where)))
        dead = (tmp_path / "dead").read_text()
        assert {end.place for end in ends.values()} == pool - {dead}
        assert (tmp_path / "night/pool/loses1-siso.attempt-1").exists()
        assert not (tmp_path / "night/pool/loses2-siso.attempt-1").exists()
        assert all(map(farm.is_free, pool))


def test_a_cell_that_has_ended_when_the_night_is_ended_counts(
    tmp_path: Path, run_night: RunNight, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ended since the last look is kept as it ended, and what did not is reported."""

    def interrupted(_: Night) -> None:
        awaited(lambda: (tmp_path / "night/one/passes-siso/junit.xml").exists())
        time.sleep(0.3)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Night, "_look", interrupted)
    plan = plan_of(*cells("one", "passes"), *cells("two", "hangs"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_night(plan)
    ends = read_state(tmp_path / "night", plan, ORIGIN)
    assert ends["one/passes-siso"].ending is Ending.MEASURED
    assert ends["two/hangs-siso"].why == "ended with the night"


@contextmanager
def running(folder: Path, code: str) -> Iterator[tuple[RunningCell, Path]]:
    """Run a program as a cell's pytest; with it comes its log."""
    (cell,) = cells("host", "any")
    lock = os.open(os.devnull, os.O_RDONLY)
    try:
        program = (sys.executable, "-c", code)
        night = Night(plan_of(cell), folder, {}, lock=lock, tell=print, origin=ORIGIN, program=program)
        yield RunningCell(cell, night), folder / cell.key / LOG_NAME
    finally:
        os.close(lock)


def end_of(ran: RunningCell) -> CellEnd:
    end = awaited(ran.ended)
    assert isinstance(end, CellEnd)
    return end


@pytest.mark.parametrize(("code", "status"), [("exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 128 + 9)])
def test_a_cell_has_the_exit_code_of_its_program(tmp_path: Path, code: str, status: int) -> None:
    """Signals are 128 and their number, as in a shell; both outputs go to the log, and it holds the night's lock."""
    prints = "import os, sys; print(os.listdir('/proc/self/fd'), flush=True); print('err', file=sys.stderr, flush=True)"
    with running(tmp_path, f"{prints}; {code}") as (ran, log):
        assert end_of(ran).exit_code == status
        assert len(log.read_text().split(",")) == 5  # input, two outputs, the lock, and the folder that is listed
        assert log.read_text().endswith("\nerr\n")


def test_a_cell_that_does_not_end_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the patience for Ctrl-C and for a request to terminate; it is broken, for the reason why it was stopped."""
    monkeypatch.setattr("perfsuite.nightly.conduct._PATIENCE_S", ((2, 0.2), (15, 0.2), (9, 0.2)))
    shell = "trap '' INT TERM; sleep 60 & echo $!; wait; sleep 60"
    with running(tmp_path, f"import os; os.execvp('bash', ['bash', '-c', {shell!r}])") as (ran, log):
        child = int(awaited(log.read_text))
        ran.stop("ended with the night")
        end = end_of(ran)
        assert (end.ending, end.exit_code, end.why) == (Ending.BROKEN, None, "ended with the night")
        awaited(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text())


#: A night in the background, which ignores Ctrl-C, and whose cell waits for that.
_NIGHT = """
import os, signal, sys, time
from pathlib import Path
from tests.nightly.test_conduct import running
signal.signal(signal.SIGINT, signal.SIG_IGN)
code = "import time; print('on', flush=True)\\ntry: time.sleep(60)\\nexcept KeyboardInterrupt: print('kept')"
with running(Path(sys.argv[1]), code):
    time.sleep(60)
"""


def test_a_cell_is_interrupted_with_the_night_that_is_killed(tmp_path: Path) -> None:
    """As by Ctrl-C, so that it keeps what it measured and gives its board back."""
    with subprocess.Popen([sys.executable, "-c", _NIGHT, tmp_path]) as night:
        log = tmp_path / "host" / "any-siso" / LOG_NAME
        awaited(lambda: log.exists() and log.read_text() == "on\n")
        night.kill()
        awaited(lambda: log.read_text() == "on\nkept\n")
