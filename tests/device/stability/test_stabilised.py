"""Bringing a device into the state that a run asks for, and back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfsuite.device.machine import NO_CONDITIONS, Conditions
from perfsuite.device.stability.stabilised import Cooled, bind_to, stabilised, wait_until_cool
from perfsuite.errors import DeviceError
from tests.sys_trees import BOARDS, UNREADABLE, governors, plant, put

ZONE = "sys/class/thermal/thermal_zone0/temp"


class Clock:
    """A clock that only sleeping moves, and what happens meanwhile."""

    def __init__(self, happens: Callable[[float], object] = lambda _: None) -> None:
        self.now_s = 1000.0
        self.n_sleeps = 0
        self._happens = happens

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s
        self.n_sleeps += 1
        self._happens(self.now_s - 1000.0)


def waited(root: Path, clock: Clock, limit_celsius: float | None = 50.0, **fields: object) -> Cooled:
    conditions = Conditions(start_below_celsius=limit_celsius, **fields)  # type: ignore[arg-type]
    return wait_until_cool(conditions, root=root, clock=clock, sleep=clock.sleep)


@pytest.fixture
def raspberry(tmp_path: Path) -> Path:
    """A Raspberry Pi at 52.35 °C."""
    return plant("raspberrypi5", tmp_path)


def test_a_cool_device_begins_at_once(raspberry: Path) -> None:
    clock = Clock()
    assert waited(raspberry, clock, 52.4) == Cooled()
    assert clock.n_sleeps == 0
    put(raspberry, ZONE, UNREADABLE)
    assert waited(raspberry, Clock(), None) == Cooled()


def test_it_waits_until_the_device_is_cool(raspberry: Path) -> None:
    clock = Clock(lambda passed_s: put(raspberry, ZONE, str(52350 - int(passed_s) * 100)))
    assert waited(raspberry, clock) == Cooled(notes=("waited 25 s until cpu-thermal was at 49.9 °C, below 50 °C",))
    put(raspberry, ZONE, "50000")
    assert waited(raspberry, Clock(), cooling_limit_s=0.0).problem is not None


def test_a_device_that_stays_hot_is_a_problem_after_the_limit(raspberry: Path) -> None:
    """What is measured then is INVALID, with the zone, the temperature, and what to do."""
    clock = Clock(lambda passed_s: put(raspberry, ZONE, str(61000 + int(passed_s))))
    found = waited(raspberry, clock, cooling_limit_s=12.0)
    assert clock.now_s == 1012.0
    assert found.problem == (
        "too hot to begin: cpu-thermal is at 61.0 °C after 12 s, not below 50 °C; "
        "cool the device or raise start_below_celsius"
    )


def test_a_zone_that_never_moves_is_suspected(raspberry: Path) -> None:
    """A stuck sensor cannot be distinguished from a device that stays hot, but its user can be pointed at it."""
    found = waited(raspberry, Clock(), cooling_limit_s=60.0)
    assert found.problem is not None
    assert "as a stuck sensor does: leave it out of thermal_zones" in found.problem


def test_zones_that_are_not_there_are_told(raspberry: Path) -> None:
    """A typing mistake in a profile is not silent."""
    found = waited(raspberry, Clock(), 60.0, thermal_zones=("cpu-thermal", "gpu-thermal"))
    assert found == Cooled(notes=("no thermal zone is called gpu-thermal; the others count",))


@pytest.mark.parametrize("reading", [UNREADABLE, "0", None])
def test_zones_that_all_read_nonsense_are_told_and_gate_nothing(raspberry: Path, reading: str | Path | None) -> None:
    """After three looks it is given up."""
    put(raspberry, ZONE, reading)
    put(raspberry, "sys/class/hwmon/hwmon0/temp1_input", "0")
    clock = Clock()
    (note,) = waited(raspberry, clock).notes
    assert note.startswith("the temperature is not known (none of cpu-thermal reads a sensible one)")
    assert clock.n_sleeps == 2


def test_a_device_without_zones_is_told(tmp_path: Path) -> None:
    clock = Clock()
    found = waited(tmp_path, clock)
    assert found.problem is None
    assert "no thermal zone that counts is there" in found.notes[0]
    assert clock.n_sleeps == 0


def test_a_sensor_that_is_busy_at_first_is_asked_again(raspberry: Path) -> None:
    """Some answer EAGAIN until they have measured."""
    put(raspberry, ZONE, "")
    clock = Clock(lambda _: put(raspberry, ZONE, "44000"))
    assert waited(raspberry, clock, thermal_zones=("cpu-thermal",)).notes == (
        "waited 5 s until cpu-thermal was at 44.0 °C, below 50 °C",
    )


@pytest.fixture(autouse=True)
def usable() -> Iterator[set[int]]:
    before = os.sched_getaffinity(0)
    yield before
    os.sched_setaffinity(0, before)


def test_children_run_where_this_process_may(usable: set[int]) -> None:
    """A worker that is started afterwards is bound too."""
    last = max(usable)
    bind_to((last,))
    command = [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split() == [str(last)]


def test_no_processors_leaves_all(usable: set[int]) -> None:
    bind_to(())
    assert os.sched_getaffinity(0) == usable
    with pytest.raises(DeviceError, match=r"processors 4096, 4097 are not there; name some of "):
        bind_to((min(usable), 4097, 4096))
    assert os.sched_getaffinity(0) == usable


FAST = Conditions(governor="performance")

#: Another process that holds a device until it is ended; SIGTERM raises in it, which who handles signals has to see to.
_HOLDING = """
import signal, sys, time
from pathlib import Path
from perfsuite.device.machine import Conditions
from perfsuite.device.stability.stabilised import stabilised

def ending(number, frame):
    raise SystemExit(128 + number)

for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, ending)
with stabilised(Conditions(governor="performance"), folder=Path(sys.argv[1]), root=Path(sys.argv[2])):
    print("holding", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A phone: hot, on its battery, held back."""
    return plant("pixel8pro", tmp_path / "board")


def ended_by(number: signal.Signals, folder: Path, root: Path) -> int:
    command = [sys.executable, "-c", _HOLDING, str(folder), str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        assert set(governors(root)) == {"performance"}
        process.send_signal(number)
        return process.wait(timeout=30)


def test_all_that_is_wrong_is_told_at_once(folder: Path, root: Path) -> None:
    """Notes say what is different, problems why it is INVALID; nothing raises."""
    conditions = Conditions(
        governor="performance",
        gpu_governor="performance",
        start_below_celsius=40,
        cooling_limit_s=30,
        least_battery_ratio=0.8,
    )
    now_s = [0.0]

    def sleep(duration_s: float) -> None:
        now_s[0] += duration_s

    with stabilised(conditions, folder=folder, root=root, clock=lambda: now_s[0], sleep=sleep) as found:
        assert set(governors(root)) == {"performance"}
    assert now_s == [30.0]
    assert [each.partition(":")[0] for each in found.problems] == ["too hot to begin", "battery too low"]
    assert len(found.notes) == 2
    assert "GPU's governor is 'quickstep'" in found.notes[0]
    assert found.notes[1] == (
        "thermal zones that read no sensible temperature are left out: batt_therm_sidekey, rf1_therm"
    )
    assert set(governors(root)) == {"sched_pixel"}


def test_what_happens_to_the_governor_during_the_run_is_told_at_its_end(folder: Path, root: Path) -> None:
    with stabilised(FAST, folder=folder, root=root) as found:
        put(root, "sys/devices/system/cpu/cpufreq/policy8/scaling_governor", "powersave")
        assert found.notes == []
    assert len(found.notes) == 1
    assert "somebody else has set 'powersave'" in found.notes[0]


@pytest.mark.parametrize(
    ("inner", "within"), [(NO_CONDITIONS, "performance"), (Conditions(governor="powersave"), "powersave")]
)
def test_contexts_may_be_nested(folder: Path, root: Path, inner: Conditions, within: str) -> None:
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/self").symlink_to("/proc/self")
    (root / f"proc/{os.getpid()}").symlink_to(f"/proc/{os.getpid()}")
    with stabilised(FAST, folder=folder, root=root) as outer:
        with stabilised(inner, folder=folder, root=root) as found:
            assert set(governors(root)) == {within}
        assert set(governors(root)) == {"performance"}
        assert (found.notes, found.problems) == ([], [])
    assert set(governors(root)) == {"sched_pixel"}
    assert outer.notes == []
    assert list(folder.iterdir()) == []


def test_breaking_off_the_wait_restores(folder: Path, root: Path) -> None:
    """Ctrl-C while the device cools finds the governors already set."""

    def interrupted(_: float) -> None:
        assert set(governors(root)) == {"performance"}
        raise KeyboardInterrupt

    conditions = Conditions(governor="performance", start_below_celsius=40)
    with pytest.raises(KeyboardInterrupt), stabilised(conditions, folder=folder, root=root, sleep=interrupted):
        pytest.fail("the run has begun")
    assert set(governors(root)) == {"sched_pixel"}
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_signal_restores(folder: Path, root: Path, number: signal.Signals, status: int) -> None:
    assert ended_by(number, folder, root) == status
    assert set(governors(root)) == {"sched_pixel"}
    assert list(folder.iterdir()) == []


def test_after_kill_nine_the_next_run_restores_first(folder: Path, root: Path) -> None:
    assert ended_by(signal.SIGKILL, folder, root) == -signal.SIGKILL
    assert set(governors(root)) == {"performance"}
    with stabilised(FAST, folder=folder, root=root) as found:
        assert len(found.notes) == 3
        assert all("restored to 'sched_pixel'" in note for note in found.notes)
    assert set(governors(root)) == {"sched_pixel"}


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {board: plant(board, tmp_path_factory.mktemp(board)) for board in BOARDS}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(board=st.sampled_from(BOARDS), changed=st.data())
def test_no_content_of_any_file_raises(
    trees: dict[str, Path], folder: Path, board: str, changed: st.DataObject
) -> None:
    """A run goes on whatever files hold, and what could be set is as before in the end."""
    root = trees[board]
    files = sorted(each for each in root.rglob("*") if each.is_file() and each.name != "vcgencmd")
    chosen = changed.draw(st.dictionaries(st.sampled_from(files), st.binary(max_size=30), min_size=1, max_size=6))
    before = {path: path.read_bytes() for path in chosen}
    conditions = Conditions(
        governor="performance", gpu_governor="performance", start_below_celsius=45, least_battery_ratio=0.9
    )
    now_s = [0.0]
    try:
        for path, content in chosen.items():
            path.write_bytes(content)
        found_before = [content.strip() for content in governors_as_bytes(root)]
        with stabilised(
            conditions,
            folder=folder,
            root=root,
            clock=lambda: now_s[0],
            sleep=lambda duration_s: now_s.__setitem__(0, now_s[0] + duration_s),
        ):
            pass
        assert [content.strip() for content in governors_as_bytes(root)] == found_before
    finally:
        for path, content in before.items():
            path.write_bytes(content)


def governors_as_bytes(root: Path) -> list[bytes]:
    return [each.read_bytes() for each in sorted(root.rglob("*governor"))]
