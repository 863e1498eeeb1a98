"""A run measures the device that it names, one at a time, and says in one line why it cannot."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError, LinkError, MeasurementError
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.environment import RUN_ID_NAME
from perfsuite.measure.plan import LlamaPlan, Plan, TurnsPlan
from perfsuite.plugin.board_options import FARM_BOARD_KEY, on_farm_board
from perfsuite.records.run_file import RunFile, read_run_file
from tests.device_lock import hold_lock, lock_holder, owner_called
from tests.fake_device import FakeDevice

from ..conftest import STORED_MODEL
from ..farm_daemons import running_farm

if TYPE_CHECKING:
    pass


REACHED = replace(find_profile("host"), name="my-shelf", kind="shelf", reach=Reach(way="ssh", identity_file="key"))


class Config:
    """What of pytest's configuration is used: options, a stash, what is called at the end."""

    def __init__(self, **options: object) -> None:
        asked = {"farm": None, "farm_wait": "1h", "farm_break": None, "farm_avoid": None, **options}
        self.option = Namespace(**{f"perf_{name}": value for name, value in asked.items()})
        self.stash = pytest.Stash()
        self.ends = ExitStack()
        self.pluginmanager = pytest.PytestPluginManager()

    def add_cleanup(self, end: Callable[[], None]) -> None:
        self.ends.callback(end)


def on_board(config: Config, profile: Profile) -> Profile:
    return on_farm_board(cast(Any, config), profile)


@pytest.mark.parametrize(
    ("options", "profile", "told"),
    [
        ({"farm_avoid": "attic"}, REACHED, "--farm-avoid=attic: needs --farm"),
        ({"farm": ""}, find_profile("host"), "--farm: host is this machine"),
        ({"farm": ""}, find_profile("pixel8pro"), "--farm: pixel8pro is reached by adb"),
    ],
)
def test_what_no_farm_can_do_is_refused(options: dict[str, object], profile: Profile, told: str) -> None:
    with pytest.raises(pytest.UsageError, match=told):
        on_board(Config(**options), profile)


@pytest.mark.long
def test_a_run_has_its_board_until_pytest_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The profile leads to the board, the stash says which, and the end gives it back; one that is away is refused."""
    with running_farm(tmp_path) as farm:
        away = replace(REACHED, reach=replace(REACHED.reach, identity_file=None))
        config = Config(farm=farm.coordinator)
        farm.add_board(REACHED.kind)
        with config.ends, pytest.raises(DeviceError, match=r"^place shelf-0: ssh root@127"):
            on_board(config, away)
        farm.client().call("-p", "shelf-0", "delete")
        monkeypatch.setattr("perfsuite.plugin.board_options._look", lambda reach: None)
        place = farm.add_board("shelf")
        config = Config(farm=farm.coordinator)
        with config.ends:
            profile = on_board(config, REACHED)
            assert profile.reach.address == "root@127.0.0.1"
            assert profile.reach.identity_file == "key"
            assert config.stash[FARM_BOARD_KEY].place == place
            assert not farm.is_free(place)
        assert farm.is_free(place)
        assert f"perfsuite: gave {place} back\n" in capsys.readouterr().err


MODEL = f"--model={STORED_MODEL}"
_CHOOSE = "perfsuite.plugin.board_options.choose_board"


def run(pytester: pytest.Pytester, *arguments: str, device: str = "host") -> pytest.RunResult:
    own = ("--perf-dir=run", "-p", "no:cacheprovider", "-o", "perf_session_spread=0.01")
    return pytester.runpytest_inprocess(f"--device={device}", MODEL, *own, *arguments)


def record(pytester: pytest.Pytester) -> RunFile:
    return read_run_file(pytester.path / "run")


class FaultyBoard(LocalBoard):
    """This machine, whose runs of one sort of plan fail from some on."""

    def __init__(
        self, fault: Exception | None = None, *, n_before: int = 0, held: Held | None = None, at: type[Plan] = LlamaPlan
    ) -> None:
        super().__init__(cache_dir=Path())
        self._fault, self._left, self._at, self._seen = fault, n_before, at, held or Held()

    def held(self) -> Held:
        return self._seen

    def _fail_at(self, plan: Plan) -> None:
        if isinstance(plan, self._at) and self._fault is not None:
            self._left -= 1
            if self._left < 0:
                raise self._fault

    def run(self, plan: Plan, **options: Any) -> dict[str, Any]:
        self._fail_at(plan)
        return super().run(plan, **options)

    def run_in_turns(self, plans: tuple[TurnsPlan, TurnsPlan], **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self._fail_at(plans[0])
        return super().run_in_turns(plans, **options)


Phases = Callable[..., pytest.RunResult]


@pytest.fixture
def phases(pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> Phases:
    def measured(*arguments: str, on: LocalBoard | None = None) -> pytest.RunResult:
        if on is not None:
            monkeypatch.setattr(_CHOOSE, lambda *_, **__: on)
        return run(pytester, "-k", "test_phase", *arguments)

    return measured


@pytest.mark.parametrize("flag", ["--perf-trace", "--perf-sweep=depth", "--backend=opencl", ""])
def test_no_option_is_refused_for_the_way_to_the_board(
    pytester: pytest.Pytester, fake_device: FakeDevice, flag: str
) -> None:
    """Every experiment goes as far as the board itself, which is not there: one line, and no run is written."""
    result = run(pytester, "--perf-address=ssh:nowhere.invalid", *filter(None, [flag]))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: ssh nowhere.invalid: *"])
    assert len(result.errlines) <= 2
    assert not (pytester.path / "run").exists()


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        ("--against=/nowhere", "--against: /nowhere: is not a folder; *"),
        ("--against-model=llama-9-q8_0", "--against-model: *llama-9*"),
        ("--against-args=threads=0", "--against-args=threads=0: accepted are *"),
        ("--perf-dir=taken/run", "*taken/run: cannot be written (Not a directory); choose --perf-dir"),
    ],
)
def test_a_mistake_is_said_before_the_device_is_waited_for(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mistake: str, line: str
) -> None:
    """Nobody waits for a device that somebody else has to learn of it; over a link, a build is looked for there."""
    (pytester.path / "taken").touch()
    monkeypatch.setattr(LocalBoard, "open", lambda _: pytest.fail("the device was asked for"))
    result = run(pytester, "--perf-wait=1h", mistake)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {line}"])


def test_listing_asks_no_board(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """The cases of a board are known without it, and they are those of this machine."""
    here = run(pytester, "--collect-only", "-q")
    there = run(pytester, "--collect-only", "-q", "--perf-address=ssh:nowhere.invalid", "--against=/x")
    assert (here.ret, there.ret) == (0, 0)
    listed = {line for line in there.outlines if "test_phase[" in line or "test_operator[" in line}
    assert listed == {line for line in here.outlines if "test_phase[" in line or "test_operator[" in line}
    assert listed
    told = run(pytester, "--collect-only", "--perf-address=ssh:nowhere.invalid")
    told.stdout.fnmatch_lines(["perfsuite: device host, which is not asked; *"])


def test_one_run_at_a_time_has_a_machine(pytester: pytest.Pytester, fake_device: FakeDevice, own_locks: Path) -> None:
    """A second run on this machine is refused with who has it; it can wait, and goes on when the machine is free."""
    owner = owner_called("ada", run_id="another", purpose="pytest --device=host")
    with hold_lock(owner, folder=own_locks):
        refused = run(pytester, "-k", "test_phase")
        waited = run(pytester, "-k", "test_phase", "--perf-wait=1s")
    assert (refused.ret, waited.ret) == (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.USAGE_ERROR)
    refused.stderr.fnmatch_lines(["ERROR: host: held by ada from desk (pytest --device=host)*--perf-wait=10m"])
    waited.stdout.fnmatch_lines(["perfsuite: host: held by ada*waiting for it, 1 s at most"])
    waited.stderr.fnmatch_lines(["ERROR: host: held by ada*waited 1 s for it"])
    assert run(pytester, "-k", "test_phase").ret == 0
    assert lock_holder(own_locks) is None


def test_a_run_within_a_command_shares_its_machine(
    pytester: pytest.Pytester, fake_device: FakeDevice, own_locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that ``perfsuite trace`` follows, and that is pytest, has the device that the command has taken."""
    owner = owner_called("ada", run_id="trace-1", purpose="perfsuite trace --device=host")
    monkeypatch.setenv(RUN_ID_NAME, "trace-1")
    with hold_lock(owner, folder=own_locks):
        outer = lock_holder(own_locks)
        assert run(pytester, "--perf-replicates=1", "-knothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
        assert lock_holder(own_locks) == outer


def test_a_lost_link_keeps_what_was_measured(pytester: pytest.Pytester, phases: Phases) -> None:
    """Enough replicates are judged as those of an interrupted run are; one line says why it ended."""
    phases("--baseline=record")
    result = phases(on=FaultyBoard(LinkError("ssh pi: the link was lost: no route"), n_before=6))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["perfsuite: error: ssh pi: the link was lost: no route"])
    result.stdout.fnmatch_lines(["*the link to the device was lost*"])
    found = record(pytester)
    assert found.is_interrupted
    assert {(each.outcome.value, len(each.samples_ns)) for each in found.judgements} == {("pass", 6)}


_KILLED = "the worker for 'turns' was killed by SIGKILL: x"
_PAIRS = "--against-args=threads=1"


@pytest.mark.parametrize(
    ("error", "at", "arguments", "exit_code", "reason"),
    [
        (LinkError("ssh pi: gone"), TurnsPlan, (_PAIRS,), pytest.ExitCode.INTERRUPTED, "link was lost after 2 pairs"),
        (MeasurementError(_KILLED), TurnsPlan, (_PAIRS,), pytest.ExitCode.TESTS_FAILED, _KILLED),
        (MeasurementError("no llama"), LlamaPlan, (), pytest.ExitCode.TESTS_FAILED, "no llama"),
    ],
    ids=["a link lost in pairs", "a worker killed in a pair", "a worker that fails late"],
)
def test_what_was_measured_before_a_failure_is_kept(
    pytester: pytest.Pytester,
    phases: Phases,
    error: Exception,
    at: type[Plan],
    arguments: tuple[str, ...],
    exit_code: int,
    reason: str,
) -> None:
    """It is in the run's file, too little to be decided by, with the failure as the reason of each case."""
    result = phases(*arguments, on=FaultyBoard(error, n_before=2, at=at))
    assert result.ret == exit_code
    result.stdout.fnmatch_lines([f"perfsuite: error: {error}"])
    found = record(pytester).judgements
    assert {(each.outcome.value, len(each.samples_ns)) for each in found} == {("invalid", 2)}
    assert all(reason in each.reason for each in found)


def test_what_a_test_times_at_the_desk_is_no_time_of_a_board(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is invalid, and says where to run it; on the board itself it is judged."""
    pytester.makepyfile("def test_own(perf):\n    perf.check('function/own', [1000] * 5)\n")
    for is_local, outcome in ((True, "new"), (False, "invalid")):
        board = FaultyBoard()
        board.is_local = is_local
        monkeypatch.setattr(_CHOOSE, lambda *_, board=board, **__: board)
        run(pytester, "test_what_a_test_times_at_the_desk_is_no_time_of_a_board.py")
        (judged,) = record(pytester).judgements
        assert judged.outcome.value == outcome
        assert ("--perf-address=local" in judged.reason) is not is_local


@pytest.mark.parametrize("arguments", [(), (_PAIRS,)])
def test_what_is_wrong_with_the_device_makes_cases_invalid(
    pytester: pytest.Pytester, phases: Phases, arguments: tuple[str, ...]
) -> None:
    """Its problems are the reason of every case, in pairs, too; its notes are reported before and after."""
    held = Held(notes=("the governor cannot be set",), problems=("hotter than it should be",))
    result = phases(*arguments, on=FaultyBoard(held=held))
    result.stdout.fnmatch_lines(["perfsuite: the governor cannot be set", "  the governor cannot be set"])
    found = record(pytester)
    assert found.device_notes == held.notes
    assert {each.outcome.value for each in found.judgements} == {"invalid"}
    assert all("hotter than it should be" in each.reason for each in found.judgements)


def test_a_device_that_is_not_given_back_well_is_an_error(pytester: pytest.Pytester, phases: Phases) -> None:
    class Stuck(FaultyBoard):
        def close(self) -> None:
            super().close()
            raise DeviceError("policy0: is still 'performance'")

    result = phases(on=Stuck())
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["perfsuite: error: policy0: is still 'performance'"])
    assert record(pytester).judgements
