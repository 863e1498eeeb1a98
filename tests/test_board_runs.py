"""Whole runs on a board, by ``pytest --device`` over real ssh, and what goes wrong with them.

Each fault ends in one clear line, keeps what was measured, and leaves a board on which the next run works.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import platformdirs
import psutil
import pytest

from perfsuite.device.lock_owner import account_name
from perfsuite.measure.bundle import making
from perfsuite.measure.bundle.making import BundleOrder
from perfsuite.measure.bundle.targets import target_of
from perfsuite.measure.engine import find_engine
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT
from perfsuite.workload.weights import materialize, resolve
from tests.board_namespaces import clock_library

from . import farm_daemons
from .board_namespaces import NamespaceBoard
from .board_runs import (
    LIMIT_S,
    NOTHING,
    PROGRAM,
    WORKER,
    Desk,
    EndedRun,
    awaited_free,
    in_replicate,
    is_let_go,
    kill_worker,
)
from .farm_daemons import awaited
from .own_bundle import own_engine
from .sys_trees import put

#: The governor that a board has, and the one that the desks' profile asks for.
SAVING, ASKED = "schedutil", "performance"

#: The exit codes of pytest.
GOOD, FAILED, INTERRUPTED, REFUSED, NOTHING_RUN, NOTHING_JUDGED = 0, 1, 2, 4, 5, 10


class Bench:
    def __init__(self, board: NamespaceBoard, governor: Path, desk: Desk) -> None:
        self.board, self.desk, self._governor = board, desk, governor

    @property
    def governor(self) -> str:
        return self._governor.read_text().strip()

    def reset_governor(self) -> None:
        """Do what a kernel does when it starts."""
        self._governor.write_text(f"{SAVING}\n")

    def broken(self, n_replicates: int, at: int, fault: Callable[[], object]) -> EndedRun:
        """Run to the end, with a fault while a replicate is measured."""
        run = self.desk.start(f"--perf-replicates={n_replicates}")
        in_replicate(run, self.board, at)
        fault()
        return run.end()

    def interrupted(self, ended: EndedRun) -> None:
        """See that a run was interrupted, and kept what it had measured."""
        assert ended.status == INTERRUPTED, ended.output
        assert ended.record is not None
        assert ended.record["interrupted"]
        assert min(ended.sample_counts) >= 2

    def await_rest(self) -> None:
        """Wait until nobody has the board, and see that it is as before."""
        awaited_free(self.board, lambda: self.governor == SAVING)

    def require_next_run(self, *, measures: bool = False) -> None:
        """See that a next run has the board without any step in between, and that all is as before afterwards."""
        self.await_rest()
        ended = self.desk.run("--perf-replicates=1") if measures else self.desk.run(*NOTHING)
        status, counts = (NOTHING_JUDGED_EXIT, {1}) if measures else (NOTHING_RUN, set[int]())
        assert (ended.status, ended.errors, ended.sample_counts) == (status, [], counts), ended.output
        assert is_let_go(self.board)
        assert self.governor == SAVING

    def mend(self) -> None:
        self.desk.clear()
        self.board.kill(PROGRAM)
        self.board.free_disk()
        self.board.link_up()
        self.board.files.trust()
        self.reset_governor()


@pytest.fixture(scope="module")
def shared(
    requires_board: None, own_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[NamespaceBoard, Path]]:
    """Give a board with the suite and the control of one frequency, and the file of its governor."""
    tree = tmp_path_factory.mktemp("sys")
    governor = put(tree, "devices/system/cpu/cpufreq/policy0/scaling_governor", SAVING)
    put(tree, "devices/system/cpu/cpufreq/policy0/scaling_available_governors", f"{ASKED} {SAVING}")
    put(tree, "devices/system/cpu/cpu0/cpufreq", Path("../cpufreq/policy0"))
    board = NamespaceBoard(sys_tree=tree)
    try:
        board.bring_suite(own_bundle)
        yield board, governor
    finally:
        board.stop()


@pytest.fixture
def bench(shared: tuple[NamespaceBoard, Path], tmp_path: Path) -> Iterator[Bench]:
    board, governor = shared
    made = Bench(board, governor, Desk(folder=tmp_path, reach=board.reach()))
    yield made
    made.mend()


def only_error(ended: EndedRun) -> str:
    (line,) = ended.errors
    assert "Traceback" not in ended.output
    return line


def test_a_board_has_the_cases_of_a_local_run(bench: Bench) -> None:
    """Over ssh and locally the same cases are measured, every one of them; the governor is set meanwhile only."""
    there, here = bench.desk.run(), bench.desk.run("--perf-address=local")
    assert list(there.cases) == list(here.cases)
    assert there.cases
    for ended in (there, here):
        assert (ended.has_gone_well, ended.sample_counts, ended.errors) == (True, {3}, []), ended.output
        assert all(each["measured_ns"] for each in ended.cases.values())
    assert f"governor {ASKED}" in there.output
    assert there.record is not None
    assert there.record["board"]["hostname"] == bench.board.hostname
    assert here.record is not None
    assert [each.record["board"]["is_linked"] for each in (there, here) if each.record] == [True, False]
    bench.await_rest()


@pytest.mark.measures
def test_the_baselines_build_runs_on_a_board_without_openmp(
    start_board: Callable[..., NamespaceBoard], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a bundle brings beside llama.cpp is kept with the build: a later run measures it again, in pairs."""
    board = start_board(without="libgomp.so*")
    assert board.run("sh", "-c", "ls /usr/lib/*/libgomp.so*").returncode != 0
    assert "libgomp.so.1 => not found" in board.run("ldd", str(find_engine().library("libggml-cpu"))).stdout
    engine = own_engine(tmp_path / "engine")
    monkeypatch.setattr(making, "build_engine", lambda *_: engine)
    target = target_of(platform.machine(), has_glibc=True)
    order = BundleOrder(target=target, processor=target.processor(None))
    bundle = making.make_bundle(order, tmp_path / "cache", lambda *_: None).folder
    desk = Desk(folder=tmp_path / "desk", reach=board.reach(), limit_s=5 * LIMIT_S)
    try:
        done = desk.perfsuite("devices", "setup", desk.name, "--bundle", str(bundle))
        assert done.returncode == 0, done.stderr
        recorded = desk.run("--baseline=record")
        assert recorded.errors == [], recorded.output
        paired = desk.run("--baseline=compare", "--perf-budget=1s")
        assert "in pairs against the build of the baseline" in paired.output, paired.output
        assert {each["n_pairs"] is not None for each in paired.cases.values()} == {True}, paired.output
    finally:
        desk.clear()


def cut_and_mended(bench: Bench) -> None:
    """Cut the link, and fix it in time."""
    bench.board.link_down()
    bench.desk.runs[-1].until("trying to reach it again")
    bench.board.link_up()


def kill_program(bench: Bench) -> None:
    """Kill the program alone: the run goes on with another one, which restores what the first has set."""
    assert bench.board.kill(PROGRAM) == 1


def reboot(bench: Bench, *, cut: bool) -> None:
    """Start the board anew, whether the desk hears of it or not."""
    bench.reset_governor()
    bench.board.reboot(cut=cut)


@pytest.mark.parametrize(
    ("n_replicates", "fault"),
    [(3, cut_and_mended), (6, kill_program), (4, partial(reboot, cut=True)), (4, partial(reboot, cut=False))],
    ids=["link", "program", "reboot unheard", "reboot"],
)
def test_a_link_that_comes_back_costs_nothing(bench: Bench, n_replicates: int, fault: Callable[[Bench], None]) -> None:
    """The run goes on, and notes it; every replicate is there."""
    ended = bench.broken(n_replicates, 2, partial(fault, bench))
    assert (ended.has_gone_well, ended.errors, ended.sample_counts) == (True, [], {n_replicates}), ended.output
    assert "the link was lost and came back" in ended.notes
    bench.require_next_run()


def test_a_link_that_stays_away_ends_the_run(bench: Bench) -> None:
    """What was measured until a link was cut is kept as of an interrupted run; the board restores itself meanwhile."""
    ended = bench.broken(50, 3, bench.board.link_down)
    bench.await_rest()
    bench.board.link_up()
    bench.interrupted(ended)
    assert bench.board.address in only_error(ended)
    bench.require_next_run()


def test_an_interrupt_keeps_what_was_measured(bench: Bench) -> None:
    """Ctrl-C ends a run on a board at once, with the replicates before it, and the board is as before."""
    ended = bench.broken(50, 3, lambda: bench.desk.runs[-1].interrupt())
    bench.interrupted(ended)
    assert ended.errors == []
    bench.require_next_run()


def test_a_worker_that_is_killed_is_told(bench: Bench) -> None:
    """A worker that is killed on the board makes its cases INVALID, with the samples before it, and the run fail."""
    ended = bench.broken(50, 3, lambda: kill_worker(bench.board))
    assert ended.status == FAILED, ended.output
    assert "SIGKILL" in only_error(ended)
    assert ended.outcomes == {"invalid"}
    assert min(ended.sample_counts) >= 2
    bench.require_next_run()


def test_what_two_kills_leave_is_taken_over(bench: Bench) -> None:
    """Where program and desk are killed at once, the next run takes the board, restores it, and says so."""
    run = bench.desk.start("--perf-replicates=50")
    in_replicate(run, bench.board, 2)
    os.kill(run.process.pid, signal.SIGSTOP)
    assert bench.board.kill(PROGRAM) == 1
    run.kill()
    assert bench.governor == ASKED
    ended = bench.desk.run("--perf-replicates=1")
    assert (ended.status, ended.errors, ended.sample_counts) == (NOTHING_JUDGED_EXIT, [], {1}), ended.output
    bench.await_rest()


def test_a_desk_that_is_killed_leaves_a_free_board(bench: Bench) -> None:
    """After kill -9 of the desk's pytest the board restores and unlocks itself, and no worker goes on."""
    run = bench.desk.start("--perf-replicates=50")
    in_replicate(run, bench.board, 2)
    assert bench.governor == ASKED
    run.kill()
    bench.await_rest()
    assert not bench.board.processes(WORKER)
    bench.require_next_run()


def test_a_full_disk_is_told(bench: Bench) -> None:
    """A board without space is refused in one line that says so; with space again it is measured."""
    shutil.rmtree(bench.board.outside(".cache/perfsuite/models"), ignore_errors=True)
    bench.board.fill_disk()
    ended = bench.desk.run()
    bench.board.free_disk()
    assert ended.status in (FAILED, REFUSED), ended.output
    assert "No space left" in only_error(ended)
    assert "new" not in ended.outcomes
    bench.require_next_run(measures=True)


def test_a_disk_that_fills_up_costs_nothing_measured(bench: Bench) -> None:
    """Where the disk fills up in the middle, what was measured is there, and the board is restored and free."""
    ended = bench.broken(6, 2, bench.board.fill_disk)
    bench.await_rest()
    bench.board.free_disk()
    assert ended.status in (GOOD, FAILED, NOTHING_JUDGED), ended.output  # neighbours may leave all of it invalid
    assert bool(ended.errors) == (ended.status == FAILED), ended.output
    assert all("No space left" in each for each in ended.errors), ended.output
    assert min(ended.sample_counts) >= 1
    bench.require_next_run()


def test_a_step_of_the_clock_changes_nothing(
    own_bundle: Path,
    start_board: Callable[..., NamespaceBoard],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """A day that the board's clock jumps in the middle is in no sample, and disturbs neither lock nor run."""
    if clock_library() is None:
        pytest.skip("boards: libfaketime is not installed; 'make test-needs' installs it")
    board = start_board(clock=True)
    board.bring_suite(own_bundle)
    request.addfinalizer((desk := Desk(folder=tmp_path, reach=board.reach())).clear)
    run = desk.start("--perf-replicates=6")
    in_replicate(run, board, 1)
    board.set_clock(86400)
    assert run.process.poll() is None
    ended = run.end()
    assert (ended.has_gone_well, ended.errors, ended.sample_counts) == (True, [], {6}), ended.output
    assert min(min(each["samples_ns"]) for each in ended.cases.values()) > 0
    assert max(max(each["samples_ns"]) for each in ended.cases.values()) < 10**9
    awaited_free(board)


def test_a_file_whose_put_was_interrupted_is_put_again(bench: Bench) -> None:
    """A put of a GGUF file that is cut leaves no half of it; the next run puts it whole, and a third not again."""
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite"))
    weights = resolve("smollm2-135m-l2-q8_0", cache_dir=cache_dir / "models")
    model = shutil.copy(materialize(weights, cache_dir=cache_dir / "models"), bench.desk.folder / "own.gguf")
    shutil.rmtree(bench.board.outside(".cache/perfsuite/models"), ignore_errors=True)
    with slow_network(bench.board):
        run = bench.desk.start(f"--model={model}")
        run.until("putting")
        stop_copy(run.process.pid)
        cut = run.end()
    assert cut.status == INTERRUPTED, cut.output
    assert bench.board.address in only_error(cut)
    bench.await_rest()
    again = bench.desk.run(f"--model={model}", "--perf-replicates=1")
    assert (again.status, again.sample_counts) == (NOTHING_JUDGED_EXIT, {1}), again.output
    assert "putting" in again.output
    assert "putting" not in bench.desk.run(f"--model={model}", "--perf-replicates=1").output
    assert not list(bench.board.outside(bench.board.home).rglob(".perfsuite-*.*"))


@contextmanager
def slow_network(board: NamespaceBoard) -> Iterator[None]:
    """Let the desk send 10 MB/s, so that a copy takes its time."""
    discipline = ["dev", board.interface, "root", "tbf", "rate", "80mbit", "burst", "64kb", "latency", "50ms"]
    told = subprocess.run(["tc", "qdisc", "add", *discipline], capture_output=True, text=True, check=False, timeout=20)
    if told.returncode:
        pytest.skip(f"boards: this machine cannot slow a network down ({told.stderr.strip()})")
    try:
        yield
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", board.interface, "root"], check=True, timeout=20)


def stop_copy(pid: int) -> None:
    """Kill the ssh that a run has started to copy a file, as soon as it is there."""

    def killed() -> list[psutil.Process]:
        children = psutil.Process(pid).children(recursive=True)
        found = [each for each in children if each.name() == "ssh" and "bytes arrived" in " ".join(each.cmdline())]
        for each in found:
            each.kill()
        return found

    awaited(killed, 20.0)


def test_two_runs_come_one_after_the_other(bench: Bench) -> None:
    """A second run is refused in one line that says who has the board; one that waits comes after the first."""
    first = bench.desk.start("--perf-replicates=15")
    in_replicate(first, bench.board, 1)
    waiting = bench.desk.start("--perf-wait=50s", *NOTHING)
    refused = bench.desk.run(*NOTHING)
    assert first.process.poll() is None
    assert refused.status == REFUSED, refused.output
    user = account_name(os.getuid())
    assert f"held by {user} from {socket.gethostname()} (pytest --device=myboard)" in only_error(refused)
    assert waiting.process.poll() is None
    assert "wait" in waiting.output
    assert (first.end().has_gone_well, waiting.end().status) == (True, NOTHING_RUN), waiting.output
    bench.await_rest()


def test_a_run_on_a_farm(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --farm a run borrows its board, whose address the farm knows, measures there, and gives it back."""
    service = {"address": bench.board.address, "port": bench.board.reach().port, "username": "root"}
    monkeypatch.setattr(farm_daemons, "_service", lambda _: service)
    bench.desk.write_profile(replace(bench.board.reach(), address="root@none.invalid"))
    with farm_daemons.running_farm(tmp_path) as farm:
        place = farm.add_board("myboard")
        run = bench.desk.start(f"--farm={farm.coordinator}")
        in_replicate(run, bench.board, 1)
        assert not farm.is_free(place)
        ended = run.end()
        assert (ended.has_gone_well, ended.errors, ended.sample_counts) == (True, [], {3}), ended.output
        awaited(lambda: farm.is_free(place))
    bench.await_rest()
