"""``perfsuite nightly`` as it is typed: nights that end, are broken off, killed, and gone on with."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from perfsuite.cli import main
from perfsuite.cli.nightly import summary_markdown, write_files
from perfsuite.nightly.cell_end import JUNIT_NAME, CellEnd, Ending
from perfsuite.nightly.night_plan import Cell, NightPlan
from perfsuite.report.exports.junit import junit_text
from perfsuite.report.exports.markdown import LIMIT_BYTES
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import synthetic_run
from tests.command_streams import Refused

from ..farm_daemons import awaited, running_farm

COMMAND = Path(__file__).resolve().parents[1] / "nightly_command.py"
LIMIT_S = 90

Begin = Callable[..., "subprocess.Popen[str]"]


def write_plan(*models: str, more: str = "", board: str = "") -> Path:
    """Write a plan of one board into the current folder; with a farm it is a shelf that is reached by ssh."""
    named = ", ".join(f'"{model}"' for model in models)
    device = "shelf" if board else "host"
    Path("devices").mkdir(exist_ok=True)
    Path("devices/shelf.toml").write_text('extends = "generic-ssh"\nkind = "shelf"\n')
    path = Path("plan.toml")
    path.write_text(
        f'schema = 1\nmodels = [{named}]\nscenarios = ["siso"]\n{more}\n[[board]]\ndevice = "{device}"\n{board}\n'
    )
    return path


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Begin nights of the plan in the test's folder; they are ended with the test."""
    monkeypatch.chdir(tmp_path)
    nights: list[subprocess.Popen[str]] = []

    def run(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(COMMAND), "plan.toml", "-o", "nights", *options]
        nights.append(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
            )
        )
        return nights[-1]

    yield run
    for night in nights:
        night.kill()
        night.communicate()


def ended(night: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of a night; return its exit code and what it printed."""
    printed, _ = night.communicate(timeout=LIMIT_S)
    return night.returncode, printed


def starts() -> list[str]:
    """The models in the order in which they were begun."""
    path = Path("starts")
    return [line.split()[1] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("models", "status"),
    [
        (("passes",), 0),
        (("passes", "fails", "breaks"), 1),
        (("passes", "breaks", "undecided"), 2),
        (("passes", "undecided"), 10),
        (("undecided", "suspects", "passes"), 11),
        (("suspects", "breaks", "passes"), 2),
    ],
)
def test_a_night_has_one_exit_code(begin: Begin, models: tuple[str, ...], status: int) -> None:
    """What fails counts for more than what could not be measured, that for more than what is suspect or not judged."""
    write_plan(*models)
    code, printed = ended(begin())
    assert code == status, printed
    assert re.search(r"host +passes +siso +measured +\d+ s +1 pass\s*\n", printed)


def test_a_night_leaves_one_summary_and_one_junit_report(begin: Begin) -> None:
    """Each cell is a row and a suite; a cell that broke is an error with its reason."""
    write_plan("passes", "fails", "breaks")
    ended(begin())
    summary = Path("nights/latest/summary.md").read_text()
    assert "| `host` | `fails` | `siso` | failed |" in summary
    root = ElementTree.parse("nights/latest/junit.xml").getroot()
    assert [suite.get("name") for suite in root] == ["host/passes-siso", "host/fails-siso", "host/breaks-siso"]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    error = root.find(".//error")
    assert error is not None
    assert error.get("message") == "ssh board: the link was lost"


def test_a_night_that_was_killed_goes_on_and_measures_nothing_twice(begin: Begin) -> None:
    """After kill -9 the cell that was running is ended and measured again, and the finished one is not."""
    write_plan("passes", "hangs", "slow")
    night = begin()
    awaited(lambda: starts() == ["passes", "hangs"])
    night.kill()
    night.wait()
    awaited(lambda: "KeyboardInterrupt" in Path("nights/latest/host/hangs-siso/pytest.log").read_text())
    going_on = begin("--resume")
    awaited(lambda: starts() == ["passes", "hangs", "hangs"])
    going_on.send_signal(signal.SIGINT)
    code, printed = ended(going_on)
    assert code == 130
    assert "3 cells, 1 of which had been measured before" in printed
    assert len(list(Path("nights").glob("*T*Z"))) == 1


@pytest.mark.long
def test_a_night_whose_cells_are_all_measured_has_nothing_to_go_on_with(begin: Begin) -> None:
    """It would be green in a second without having measured anything; a run that is gone is measured again."""
    write_plan("passes", "fails")
    assert ended(begin())[0] == 1
    Path("nights/latest/summary.md").unlink()
    code, printed = ended(begin("--resume"))
    assert code == 2
    assert "| `fails` | `siso` | failed |" in Path("nights/latest/summary.md").read_text()
    assert "this night is complete; nothing was measured; leave out --resume for another" in printed
    assert printed.count("\n") == 1
    assert starts() == ["passes", "fails"]
    Path("nights/latest/host/passes-siso/run.json").unlink()
    assert ended(begin("--resume"))[0] == 1
    assert starts() == ["passes", "fails", "passes"]


def test_a_night_of_another_commit_is_told(begin: Begin) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "one")):
        subprocess.run([*git, *words], check=True)
    write_plan("passes", "breaks")
    assert ended(begin())[0] == 2
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "two"], check=True)
    code, printed = ended(begin("--resume"))
    assert code == 2
    assert re.search(
        r"the night began at commit \w{12}, and the working tree is at \w{12}; check that one out", printed
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_night_that_is_ended_ends_its_cells(begin: Begin, number: signal.Signals, status: int) -> None:
    """What is running is interrupted as by Ctrl-C, and what had ended is in the summary."""
    write_plan("passes", "hangs")
    night = begin()
    awaited(lambda: starts() == ["passes", "hangs"])
    night.send_signal(number)
    code, printed = ended(night)
    assert code == status, printed
    assert "Traceback" not in printed
    assert "KeyboardInterrupt" in Path("nights/latest/host/hangs-siso/pytest.log").read_text()
    summary = Path("nights/latest/summary.md").read_text()
    assert re.search(r"\| `hangs` \| `siso` \| broken \| \d+ s \| `ended with the night` \|", summary)


@pytest.mark.long
def test_what_ends_all_processes_of_a_night_leaves_nothing(begin: Begin, tmp_path: Path) -> None:
    """A job that is ended asks each of them to terminate: the board is given back, and nobody is left."""
    with running_farm(tmp_path) as farm:
        place = farm.add_board("shelf")
        write_plan("hangs", board=f'farm = "{farm.coordinator}"')
        night = begin()
        awaited(lambda: starts() == ["hangs"])
        processes = [psutil.Process(night.pid), *psutil.Process(night.pid).children(recursive=True)]
        assert any("perfsuite.device.farm.supervision" in each.cmdline() for each in processes)
        for each in processes:
            each.terminate()
        awaited(lambda: farm.is_free(place))
        assert ended(night)[0] == 128 + signal.SIGTERM
        _, alive = psutil.wait_procs(processes, timeout=10)
        assert not alive


@pytest.mark.long
def test_a_killed_night_gives_its_board_back(begin: Begin, tmp_path: Path) -> None:
    """After kill -9 of the night the board of the farm is free again within seconds."""
    with running_farm(tmp_path) as farm:
        place = farm.add_board("shelf")
        write_plan("hangs", board=f'farm = "{farm.coordinator}"')
        night = begin()
        awaited(lambda: starts() == ["hangs"])
        assert not farm.is_free(place)
        night.kill()
        awaited(lambda: farm.is_free(place))


def test_a_board_of_the_plan_may_be_measured_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    monkeypatch.chdir(tmp_path)
    write_plan("smollm2-135m-q8_0", board='name = "attic"\nfarm = "farm:20408"\n[[board]]\ndevice = "host"')
    for boards, n_cells in ((["host"], "1 cell,"), (["host", "attic"], "2 cells,")):
        assert main(["nightly", "plan.toml", "--dry-run", *(f"--board={board}" for board in boards)]) == 0
        assert n_cells in capsys.readouterr().out
    told = refused(["nightly", "plan.toml", "--dry-run", "--board=atic"])
    assert "--board=atic: no board of the plan; it has attic, host" in told


PASSED = CellEnd(ending=Ending.MEASURED, exit_code=0, seconds=60, n_cases={"pass": 200})


def night_of(n_cells: int) -> NightPlan:
    """A plan of so many cells on one board."""
    cells = tuple(
        Cell(board="desk", device="host", model="m", scenario=f"p{number}-g4", lane="local")
        for number in range(n_cells)
    )
    return NightPlan(cells=cells, at_once={"desk": 1}, cell_limit_s=1, night_limit_s=1, wait_s=1)


def measured(plan: NightPlan, folder: Path, n_cases: int) -> dict[str, CellEnd]:
    run = synthetic_run(n_cases=n_cases, n_regressed=0)
    one = write_run(run, folder / "one")
    junit = folder / "one" / JUNIT_NAME
    junit.write_text(junit_text([run]))
    for cell in plan.cells:
        (folder / cell.key).mkdir(parents=True)
        for file in (one, junit):
            (folder / cell.key / file.name).hardlink_to(file)
    return {cell.key: PASSED for cell in plan.cells}


def peak_bytes(n_cells: int, folder: Path) -> int:
    """The most memory that the files of a night of so many cells take to write."""
    plan = night_of(n_cells)
    ends = measured(plan, folder, 200)
    tracemalloc.start()
    try:
        write_files(plan, folder, ends)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_the_files_of_a_long_night_take_the_memory_of_a_short_one(tmp_path: Path) -> None:
    """A hundred runs of 200 cases take less than four times the memory of four: the text itself is bounded."""
    peak_bytes(2, tmp_path / "warm")
    assert peak_bytes(100, tmp_path / "long") < 4 * peak_bytes(4, tmp_path / "short")


@pytest.mark.long
def test_a_summary_is_what_a_runner_shows(tmp_path: Path) -> None:
    """Of 3,000 cells those are reported first that fail or were not measured; what is left out is counted."""
    plan = night_of(3_000)
    ends = dict.fromkeys([cell.key for cell in plan.cells[:-1]], PASSED)
    ends[plan.cells[2_500].key] = CellEnd(ending=Ending.FAILED, exit_code=1, seconds=1, n_cases={"regressed": 1})
    some = NightPlan(cells=plan.cells[:200], at_once={}, cell_limit_s=1, night_limit_s=1, wait_s=1)
    measured(some, tmp_path, 500)
    text = summary_markdown(plan, tmp_path, ends)
    assert len(text.encode()) <= LIMIT_BYTES
    assert (
        text.index("`p2500-g4` | failed |") < text.index("`p2999-g4` | not run |") < text.index("`p0-g4` | measured |")
    )
    assert "_Left out to save room: 2000 cells; night.json has all._" in text
    assert "runs._" in text


def test_a_short_summary_is_in_the_order_of_the_plan(tmp_path: Path) -> None:
    """Nothing is left out, and nothing is moved to the top."""
    plan = night_of(3)
    failed = CellEnd(ending=Ending.FAILED, exit_code=1, seconds=1, n_cases={"regressed": 1})
    text = summary_markdown(plan, tmp_path, {plan.cells[2].key: failed, plan.cells[0].key: PASSED})
    assert text.index("`p0-g4`") < text.index("`p1-g4`") < text.index("`p2-g4`")
    assert "Left out" not in text
