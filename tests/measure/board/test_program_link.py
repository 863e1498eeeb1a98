"""A board is held, set, watched and judged as this machine is."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.covariates import device_covariates
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.machine import Conditions
from perfsuite.device.stability.sampler import sampled
from perfsuite.errors import DeviceError, EngineError, LinkError, LockedError, MeasurementError, PerfsuiteError
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.program import machine_of
from perfsuite.measure.board.program_engines import ENGINE_FILE
from perfsuite.measure.engine_store import engine_folder, open_store
from perfsuite.measure.launch import READY_MARK
from perfsuite.measure.plan import (
    TurnsPlan,
    dump_record,
)
from perfsuite.records.whole_file import file_digest
from perfsuite.workload.weights import materialize, resolve
from tests.device_lock import LOCK_NAME, hold_lock, lock_holder

from ...sys_trees import BOARDS, SMALL_CORES_OFF, governors, plant
from ..conftest import is_gone
from .conftest import ANY, LLAMA, PROGRAM, BoardHome, OnTree, Opened, rooted

BOOT_ID = "proc/sys/kernel/random/boot_id"

#: What its firmware's program says is not asked for over this link.
_OF_FIRMWARE = {"raspberrypi5": {"throttled", "power_watts"}}


@pytest.fixture
def home(bundled: BoardHome) -> BoardHome:
    return bundled


def other_board(home: BoardHome, run_id: str = "run-1") -> LocalBoard:
    """Return the same board as this machine would have it: the same locks and cache."""
    claim, cache_dir = home.hello(run_id=run_id).claim, home.folder / "cache" / "perfsuite"
    return LocalBoard(cache_dir=cache_dir, claim=claim)


def test_each_excludes_the_other(home: BoardHome, opened: Opened) -> None:
    first = opened(home)
    owner = lock_holder(home.locks)
    assert owner is not None
    assert (owner.user, owner.pid) == ("ada", home.pid)
    assert owner.state_folder == str(home.folder / "cache" / "perfsuite" / "device")
    assert (home.locks / LOCK_NAME).stat().st_mode == 0o100666
    line = r"^board: held by ada from desk \(a test\), account .* since .*\+00:00, process \d+; 'perfsuite devices "
    with pytest.raises(LockedError, match=line) as told:
        other_board(home, "run-2").open()
    first.close()
    with closing(other_board(home)) as other:
        other.open()
        with pytest.raises(LockedError, match=line) as told_back:
            home.board(hello=home.hello(run_id="run-2")).open()
    shape = str(told.value).partition(" since ")[0]
    assert str(told_back.value).partition(" since ")[0] == shape


@pytest.mark.long_but_first
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"user": 1}', b"[" * 20_000, b'{"user": "\\u001b"}'])
def test_nonsense_in_the_lock_is_one_line(home: BoardHome, content: bytes) -> None:
    with hold_lock(folder=home.locks):
        (home.locks / LOCK_NAME).write_bytes(content)
        with pytest.raises(LockedError, match="does not say whose it is") as caught:
            home.board().open()
    assert str(caught.value).isprintable()


def test_what_is_no_lock_is_refused(home: BoardHome) -> None:
    """No link is followed."""
    (home.locks / LOCK_NAME).symlink_to(home.folder / "other")
    with pytest.raises(DeviceError, match=r"is not a lock of perfsuite's.*; remove it"):
        home.board().open()
    assert not (home.folder / "other").exists()


@pytest.mark.parametrize("lent", [None, "ondemand"])
def test_a_killed_program_leaves_what_the_next_one_restores(on_tree: OnTree, opened: Opened, lent: str | None) -> None:
    """The next run gives the board's own governors back, whatever was set in between."""
    root = rooted(home := on_tree("rubikpi"))
    before = governors(root)
    first = home.board(hello=home.hello(conditions=Conditions(governor="performance")))
    first.open()
    if lent is not None:
        first.set_governor(lent)
    home.end()
    with pytest.raises(LinkError, match="ended from outside"):
        first.close()
    assert is_gone(home.pid)
    assert set(governors(root)) == {lent or "performance"}
    lines = opened(home).held().notes
    assert governors(root) == before
    assert any("left by a run that was killed: " in each and each.endswith("restored to 'schedutil'") for each in lines)


def test_what_an_earlier_run_left_is_restored(on_tree: OnTree, opened: Opened) -> None:
    root = rooted(home := on_tree("rubikpi"))
    path = root / "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
    before = path.read_text().strip()
    kept = home.folder / "cache" / "perfsuite" / "device" / "restore.json"
    kept.parent.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    change = {"path": str(path.relative_to(root)), "before": before, "set_to": ["powersave"]}
    content = {"boot_id": boot, "process_id": 2**22 + 1, "process_start": 1, "changes": [change]}
    kept.write_text(json.dumps(content, indent=1))
    path.write_text("powersave\n")
    board = opened(home)
    assert path.read_text().strip() == before
    board.close()
    for other in ("{", json.dumps({**content, "changes": [{**change, "path": "sys/../etc/governor"}]})):
        kept.write_text(other)
        board = opened(home)
        assert any("is damaged; kept as restore.json.damaged" in note for note in board.held().notes)
        board.close()
        assert not kept.exists()


def asked_of_lock(home: BoardHome, program: Path, *words: str) -> dict[str, Any]:
    """Ask a board's program about its lock, as ``perfsuite devices unlock`` does."""
    command = [str(program), "lock", *words, f"--folder={home.locks}"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(home.folder / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (2 if "error" in answer else 0)
    return answer


def test_a_board_is_unlocked_without_python(home: BoardHome, opened: Opened, program: Path) -> None:
    assert asked_of_lock(home, program, "state") == {"lock": None, "notes": []}
    board = opened(home)
    seen = lock_holder(home.locks)
    assert seen is not None
    assert LockOwner.from_plain(asked_of_lock(home, program, "state")["lock"]) == seen
    assert "or end it with --force" in asked_of_lock(home, program, "break")["error"]
    assert asked_of_lock(home, program, "break", "--force") == {"lock": seen.to_plain(), "notes": []}
    assert is_gone(home.pid)
    board = opened(home)
    home.end()
    with pytest.raises(LinkError):
        board.close()
    assert asked_of_lock(home, program, "state") == {"lock": None, "notes": []}
    (note,) = asked_of_lock(home, program, "break")["notes"]
    assert note.startswith("the run before this one was killed: ada from desk (a test)")
    assert asked_of_lock(home, program, "brake") == {"error": "give 'state', 'break' or 'break --force'"}


@pytest.mark.parametrize(
    ("is_owned", "said"), [(False, "belongs to the account 1,"), (True, "others can write there,")]
)
def test_a_cache_of_another_account_is_refused_without_python(
    home: BoardHome, opened: Opened, program: Path, is_owned: bool, said: str
) -> None:
    """What breaks a lock and what serves read and write nothing there; the line says whose it is, and what to do."""
    cache = home.folder / "cache" / "perfsuite"
    cache.mkdir(parents=True)
    if is_owned:
        cache.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(cache, 1, -1)
    else:
        pytest.skip("only root can give a folder to another account")
    assert f"{cache}: {said}" in asked_of_lock(home, program, "break")["error"]
    with pytest.raises(PerfsuiteError, match=said):
        opened(home)


@pytest.mark.parametrize("is_restored", [True, False])
def test_what_a_killed_run_left_is_restored_when_its_lock_is_broken(
    home: BoardHome, program: Path, is_restored: bool
) -> None:
    """After an unlock without Python the restore file is gone: nothing of this boot, or nothing that is still set."""
    kept = home.folder / "cache" / "perfsuite" / "device" / "restore.json"
    kept.parent.mkdir(parents=True)
    boot = Path("/", BOOT_ID).read_text().strip() if is_restored else "another"
    kept.write_text(json.dumps({"boot_id": boot, "process_id": 2**22 + 1, "process_start": 1, "changes": []}))
    notes = asked_of_lock(home, program, "break")["notes"]
    assert not kept.exists()
    other_boot = "from before the last start of the device, which has reset what a run had set; removed"
    assert notes == ([] if is_restored else [f"{kept}: {other_boot}"])


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_read_as_it_would_read_itself(on_tree: OnTree, opened: Opened, name: str) -> None:
    root = rooted(home := on_tree(name))
    here = device_covariates(root)
    told = dict(opened(home).covariates())
    firmware = _OF_FIRMWARE.get(name, set())
    assert {key: told[key] for key in here if key not in firmware} == {
        key: here[key] for key in here if key not in firmware
    }
    assert told["temperature_celsius"] is not None


@pytest.mark.parametrize("name", ["rubikpi", "orangepi5", "pixel8pro"])
def test_samples_are_those_that_the_board_would_take(on_tree: OnTree, opened: Opened, name: str) -> None:
    root = rooted(home := on_tree(name))
    (home.folder / "record").write_bytes(dump_record("llama", {"worker": "done"}))
    home.install('sleep 1.2; cp "$(dirname "$0")/record" "$last"')
    seen = sampled(root)
    seen.take_all()
    payload = opened(home).run(LLAMA)
    here = seen.samples[0]
    assert payload["worker"] == "done"
    assert payload["was_throttled"] == seen.was_throttled
    assert len(payload["device_samples"]) >= 3
    for each in payload["device_samples"]:
        assert each["at_ns"] > here.at_ns
        assert {**each, "at_ns": 0} == {name: getattr(here, name) for name in each} | {"at_ns": 0}


def test_a_board_that_stays_hot_is_a_problem(on_tree: OnTree, opened: Opened) -> None:
    conditions = Conditions(start_below_celsius=2.0, cooling_limit_s=0.0)
    board = opened(on_tree("rubikpi"), conditions)
    (problem,) = board.held().problems
    assert problem.startswith("too hot to begin: ")
    board.close()
    assert board.held().problems == (problem,)


def test_synthetic_weights_are_put_there_once(home: BoardHome, opened: Opened, tmp_path: Path) -> None:
    """There is nothing that could write them there: they are written here, and are there under their hash."""
    weights = resolve("smollm2-135m-l2-q8_0", cache_dir=tmp_path)
    there = opened(home).place_weights(weights)
    assert there == home.folder / "cache" / "perfsuite" / "models" / f"{file_digest(there)}.gguf"
    assert file_digest(there) == file_digest(materialize(weights, cache_dir=tmp_path))
    put_ns = there.stat().st_mtime_ns
    assert opened(home).place_weights(weights) == there
    assert there.stat().st_mtime_ns == put_ns


def test_an_engine_is_kept_as_python_keeps_it(home: BoardHome, opened: Opened, engine_cache: Path) -> None:
    home.bring_libraries(engine_cache)
    board = opened(home)
    engine = board.find_engine(None)
    engine_id = board.keep(engine, "b123")
    assert board.keep(engine, "b123") == engine_id
    folder = board.kept_folder(engine_id)
    assert folder == home.folder / "cache" / "perfsuite" / "engines" / engine_id
    store = open_store(home.folder / "cache" / "perfsuite")
    (entry,) = store.entries()
    assert (entry.engine_id, entry.build_id, entry.version) == (engine_id, engine.build_id, "b123")
    assert store.folder_of(engine_id) == folder
    found = board.find_engine(engine_folder(folder))
    assert (found.library_dir, found.build_id) == (folder / "lib", engine.build_id)
    assert board.kept_folder("0" * 16) is None
    assert board.kept_folder("../../..") is None
    library = next((folder / "lib").glob("libllama.so*"))
    library.write_bytes(b"another")
    with pytest.raises(EngineError, match="has another content than when it was kept"):
        board.kept_folder(engine_id)
    described = json.loads((folder / ENGINE_FILE).read_text())
    (folder / ENGINE_FILE).write_text(json.dumps({**described, "suite_version": "9.9"}))
    with pytest.raises(EngineError, match=r"was made by perfsuite 9\.9"):
        board.find_engine(folder)


def test_a_worker_past_its_limit_is_stopped(home: BoardHome, opened: Opened) -> None:
    home.install('echo $$ > "$(dirname "$0")/worker.pid"; sleep 60 & wait')
    board = opened(home)
    with pytest.raises(
        MeasurementError, match=r"^the worker for 'opencl_devices' was still running after \d+ s and was stopped"
    ):
        board.run(ANY, limit_s=0.5)
    turns = TurnsPlan(llama=LLAMA)
    with pytest.raises(MeasurementError, match=r"^the worker for 'turns' did not finish in time and was stopped"):
        board.run_in_turns((turns, turns), n_turns=2, leader=0, limit_s=0.5)
    assert is_gone(home.worker_pid)


def test_turns_are_taken_as_they_are_ordered(home: BoardHome, opened: Opened) -> None:
    """The leader begins, and each goes on when it is asked: A B B A; their own variables are their own."""
    (home.folder / "record").write_bytes(dump_record("turns", {"engine": {}}))
    home.install(
        f'here=$(dirname "$0"); echo {READY_MARK}; while read -r line; do echo "$WHO" >> "$here/order"; '
        f'echo {READY_MARK}; done; cp "$here/record" "$last"'
    )
    turns = TurnsPlan(llama=LLAMA)
    told = opened(home).run_in_turns(
        (turns, turns), n_turns=2, leader=1, own_environments=({"WHO": "first"}, {"WHO": "second"})
    )
    assert (home.folder / "order").read_text().split() == ["second", "first", "first", "second"]
    assert [each["engine"] for each in told] == [{}, {}]


def test_others_that_use_the_processors_are_named(home: BoardHome, opened: Opened) -> None:
    """The looks are taken there; what the program and its workers use is not counted."""
    board = opened(home)
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as other:
        try:
            found = board.competition()
        finally:
            other.kill()
    assert any(share > 0 for share in found.processors.values())
    assert home.bundle.joinpath(PROGRAM).is_file()
    assert PROGRAM not in found.processors


def test_only_processors_that_are_on_get_threads(tmp_path: Path) -> None:
    told = {"hostname": "board", "architecture": "aarch64", "n_processors": 2, "usable_processors": [4, 5]}
    assert machine_of(told, plant(SMALL_CORES_OFF, tmp_path)).default_threads == 2
