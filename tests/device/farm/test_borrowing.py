"""Runs that borrow boards of a farm that is really running: one after the other, side by side, and what is left."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.farm.borrowing import borrowed_board, place_reach
from perfsuite.device.farm.request import farm_request
from perfsuite.device.process_start import is_there
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError, LinkError, PerfsuiteError

from ...farm_daemons import Farm, awaited, running_farm
from .test_client import Printer

pytest.importorskip("yaml", reason="labgrid, which brings PyYAML, is not installed; 'make long-needs' installs it")


def environment(*resources: str) -> Any:
    return Printer("targets:\n  b:\n    resources:\n" + "".join(f"    - {each}\n" for each in resources))


def test_the_address_of_the_place_takes_the_place_of_the_profile_s() -> None:
    """A service without a port leaves it to OpenSSH."""
    client = environment("NetworkService: {address: b.local, username: root}", "NetworkPowerPort: {host: p}")
    reach = place_reach(client, "b", Reach(way="ssh", address="old", port=22, home="/opt"))
    assert reach == Reach(way="ssh", address="root@b.local", home="/opt")
    linked = place_reach(environment("NetworkService: {address: 'fe80::1%eth0', username: ''}"), "b", Reach())
    assert linked.address == "fe80::1%eth0"


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        (["RawSerialPort: {port: tty}"], "has 0 resources"),
        (["NetworkService: {address: a, username: u}", "NetworkService: {address: b, username: u}"], "a, b"),
        (["NetworkService: {address: '', username: root, port: 0}"], "NetworkService: address is ''"),
        (["NetworkService: {address: a, username: root, port: 0}"], "NetworkService: port is 0"),
        (["NetworkService: {address: -oProxyCommand=x, username: u}"], "expected a host's name"),
        (["NetworkService: {address: evil@h, username: u}"], "NetworkService: address is 'evil@h'"),
        (["NetworkService: {address: h, username: -oProxyCommand=x}"], "NetworkService: username is '-oPr"),
        (["NetworkService: {address: h, username: u@evil}"], "NetworkService: username is 'u@evil'"),
        (["NetworkService: {address: a, username: u, port: 99999}"], "expected a whole number from 1 to 65535"),
        (["NetworkService: [}"], "cannot be read"),
    ],
)
def test_a_place_that_says_no_address_is_refused(resources: list[str], told: str) -> None:
    with pytest.raises(DeviceError, match=told):
        place_reach(environment(*resources), "b", Reach())


BORROWER = Path(__file__).resolve().parents[2] / "farm_borrower.py"
LIMIT_S = 60.0


class Run:
    """A run in a process of its own; what it prints is kept in a file."""

    def __init__(self, farm: Farm, log: Path, kind: str, *options: str) -> None:
        command = [sys.executable, str(BORROWER), farm.coordinator, kind, *options]
        self.log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )

    def prints(self, pattern: str) -> re.Match[str]:
        found = awaited(lambda: re.search(pattern, self.log.read_text()), LIMIT_S)
        assert isinstance(found, re.Match)
        return found

    def got(self) -> str:
        return self.prints(r"got (\S+) ")[1]

    def end(self) -> int:
        self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode


Start = Callable[..., Run]


def refusal(farm: Farm, kind: str, reach: Reach = Reach(), **asked: Any) -> str:  # noqa: B008 -- it is frozen
    with (
        pytest.raises(PerfsuiteError) as refused,
        borrowed_board(kind, reach, farm_request(farm.coordinator, **asked), tell=print),
    ):
        pytest.fail("it has a board")
    return str(refused.value)


@pytest.fixture
def start(farm: Farm, tmp_path: Path) -> Iterator[Start]:
    runs: list[Run] = []

    def begin(kind: str, *options: str) -> Run:
        runs.append(Run(farm, tmp_path / f"run{len(runs)}.log", kind, *options))
        return runs[-1]

    yield begin
    for run in runs:
        run.process.kill()
        run.process.communicate()


@pytest.mark.long
def test_a_board_is_reached_as_its_place_says(farm: Farm) -> None:
    """Address, port and user are those of the place's NetworkService; the key stays that of the profile."""
    place, told = farm.add_board("reached"), []
    reach = Reach(way="ssh", address="elsewhere", port=9, identity_file="key")
    with borrowed_board("reached", reach, farm_request(farm.coordinator), tell=told.append) as board:
        assert board.place == place
        assert re.fullmatch(r"ssh root@127\.0\.0\.1:22\d\d", board.reach.text)
        assert board.reach.identity_file == "key"
        held = farm.place(place).holder
        assert held is not None
        assert held.name == board.holder_name
        assert held.is_alive_here
    assert farm.is_free(place)
    assert told[-1] == f"gave {place} back"


@pytest.mark.long
def test_two_runs_of_one_user_have_a_board_one_after_the_other(farm: Farm, start: Start) -> None:
    farm.add_board("single")
    first = start("single")
    first.got()
    second = start("single")
    second.prints(rf"waiting for a board with board=single: \S+ is locked by .*run of process {first.process.pid}")
    assert "got" not in second.log.read_text()
    assert first.end() == 0
    begin = float(second.prints(r"got \S+ \d+ at (\S+)")[1])
    assert begin > float(first.prints(r"done at (\S+)")[1])
    assert second.end() == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "status"), [("success", 0), ("failure", 1), ("SIGINT", -signal.SIGINT), ("SIGTERM", -signal.SIGTERM)]
)
def test_a_board_is_given_back_however_a_run_ends(farm: Farm, start: Start, how: str, status: int) -> None:
    place = farm.add_board(f"end_{how.lower()}")
    run = start(f"end_{how.lower()}", *(["--fail"] if how == "failure" else []))
    run.got()
    if how.startswith("SIG"):
        run.process.send_signal(signal.Signals[how])
    assert run.end() == status
    awaited(lambda: farm.is_free(place))


@pytest.mark.long
@pytest.mark.parametrize("is_asked", [False, True])
def test_a_supervisor_gives_the_board_of_an_ended_run_back(farm: Farm, start: Start, is_asked: bool) -> None:
    """A job that is ended asks all of its processes to terminate; the supervisor heeds that only when it is done."""
    place = farm.add_board(f"ended{is_asked}")
    run = start(f"ended{is_asked}")
    supervisor = int(run.prints(r"got \S+ (\d+) ")[1])
    ended = ["-TERM", str(supervisor), str(run.process.pid)] if is_asked else ["-KILL", str(run.process.pid)]
    subprocess.run(["kill", *ended], check=True)
    awaited(lambda: farm.is_free(place), 10)
    awaited(lambda: not _is_running(supervisor))


@pytest.mark.long
def test_a_request_to_terminate_that_comes_at_once_is_not_heeded_either(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals are blocked in a supervisor before its first line, and not in the run."""
    place = farm.add_board("early")
    begun = subprocess.Popen

    def ended_at_once(*words: Any, **more: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = begun(*words, **more)
        if "perfsuite.device.farm.supervision" in words[0]:
            process.terminate()
        return process

    monkeypatch.setattr(subprocess, "Popen", ended_at_once)
    with borrowed_board("early", Reach(), farm_request(farm.coordinator), tell=print) as board:
        assert _is_running(board.supervisor_pid)
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert farm.is_free(place)


@pytest.mark.long
def test_a_board_that_says_no_address_does_not_take_every_run(farm: Farm, start: Start) -> None:
    farm.client().call("-p", "dead", "create")
    farm.client().call("-p", "dead", "set-tags", "board=mixed")
    place = farm.add_board("mixed")
    farm.client("alice").call("-p", place, "acquire")
    run = start("mixed")
    run.prints("place dead has 0 resources .*; it is set aside, and another one is asked for")
    farm.client("alice").call("-p", place, "release")
    assert run.got() == place
    assert not farm.is_free("dead")
    assert run.end() == 0
    assert farm.is_free("dead")
    assert farm.is_free(place)


@pytest.mark.long
def test_a_board_that_cannot_be_reached_lets_the_next_free_one_go_on(farm: Farm) -> None:
    kind, told, looked = "cut", list[str](), list[Reach]()
    both = {farm.add_board(kind), farm.add_board(kind)}

    def look(reach: Reach) -> None:
        looked.append(reach)
        if reach == looked[0]:
            raise LinkError(f"{reach.text}: no route to it")

    request = farm_request(farm.coordinator)
    with borrowed_board(kind, Reach(way="ssh"), request, tell=told.append, look=look) as board:
        assert board.reach == looked[1]
        (away,) = both - {board.place}
        assert not farm.is_free(away)
    assert f"place {away}: {looked[0].text}: no route to it; it is set aside, and another one is asked for" in told
    assert all(map(farm.is_free, both))

    farm.client().call("-p", board.place, "delete")
    with (
        pytest.raises(DeviceError, match=f"place {away}: .*: no route to it$"),
        borrowed_board(kind, Reach(way="ssh"), request, tell=told.append, look=look),
    ):
        pytest.fail("it has a board")
    assert farm.is_free(away)


@pytest.mark.long
def test_a_run_that_is_killed_while_it_waits_leaves_no_reservation(farm: Farm, start: Start) -> None:
    """A reservation of a dead run would take the board from the next one for a minute."""
    place = farm.add_board("impatient")
    first = start("impatient")
    first.got()
    second = start("impatient")
    second.prints("waiting for a board")
    second.process.kill()
    awaited(lambda: farm.client().call("reservations").count("board=impatient") == 1)
    assert first.end() == 0
    assert farm.is_free(place)


@pytest.mark.long
def test_a_lock_that_outlives_its_run_is_explained_and_broken_on_request(farm: Farm, start: Start) -> None:
    place = farm.add_board("stale")
    dead = start("stale")
    supervisor = int(dead.prints(r"got \S+ (\d+) ")[1])
    subprocess.run(["kill", "-9", str(supervisor), str(dead.process.pid)], check=True)
    dead.end()
    patient = start("stale", "--wait", "1s")
    assert patient.end() == 2
    told = patient.log.read_text()
    assert f"run of process {dead.process.pid}, since 20" in told
    assert f"no such process is here any more; --farm-break={place}" in told
    assert told.splitlines()[-1].startswith("error: no board with board=stale was free within 1 s")
    asked = start("stale", "--break", place)
    assert asked.got() == place
    assert f"on {place}" in asked.prints("broke the lock of .*")[0]
    assert asked.end() == 0
    assert farm.is_free(place)


@pytest.mark.long
def test_the_lock_of_a_run_that_is_alive_here_is_not_broken(farm: Farm, start: Start) -> None:
    place = farm.add_board("alive")
    run = start("alive")
    run.got()
    assert f"kill {run.process.pid}" in refusal(farm, "alive", broken_place=place)
    assert farm.place(place).holder is not None


@pytest.mark.long
def test_a_run_whose_lock_was_broken_says_so(farm: Farm) -> None:
    place, told = farm.add_board("taken"), []
    with borrowed_board("taken", Reach(), farm_request(farm.coordinator), tell=told.append) as board:
        farm.client().call("-p", place, "release-from", board.holder_name)
    assert "no longer this run's" in told[-1]


@pytest.mark.long
def test_a_coordinator_that_goes_away_in_the_middle_costs_no_run(tmp_path: Path) -> None:
    told: list[str] = []
    with running_farm(tmp_path) as farm:
        farm.add_board("orphan")
        with borrowed_board("orphan", Reach(), farm_request(farm.coordinator), tell=told.append):
            for daemon in farm.daemons:
                daemon.kill()
    assert told[-1].startswith("the board was not given back: labgrid's coordinator")
    assert "\n" not in told[-1]


def _is_running(pid: int) -> bool:
    return is_there(pid, None) is not False
