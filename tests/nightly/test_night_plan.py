"""Plans of nights in TOML, and every mistake in them as one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.profile import Profile, find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly import night_plan
from perfsuite.nightly.night_plan import NightPlan, read_plan

WHOLE = """
schema = 1
models = ["smollm2-135m-q8_0", "models/own.gguf"]
scenarios = ["siso", "liso"]
arguments = ["--perf-replicates=5"]
cell_limit = "45m"
night_limit = "8h"
wait = "30m"
history = "history"

[[board]]
device = "host"
scenarios = ["siso"]

[[board]]
name = "attic"
device = "rubikpi"
farm = "farm:20408"
at_once = 2
models = ["smollm2-135m-q8_0"]
arguments = ["--threads=4"]
"""


@pytest.fixture(autouse=True)
def own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the file that the plan names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models/own.gguf").touch()


def read(folder: Path, text: str) -> NightPlan:
    path = folder / "plan.toml"
    path.write_text(text)
    return read_plan(path)


def test_a_plan_is_a_matrix(tmp_path: Path) -> None:
    """Boards times models times scenarios; a board's own lists take the place of the plan's, arguments are added."""
    (tmp_path / "plan.toml").write_text(WHOLE)
    plan = read_plan(tmp_path / "plan.toml")
    assert [cell.key for cell in plan.cells] == [
        "host/smollm2-135m-q8_0-siso",
        "host/models_own.gguf-siso",
        "attic/smollm2-135m-q8_0-siso",
        "attic/smollm2-135m-q8_0-liso",
    ]
    kept = f"--perf-history={tmp_path / 'history'}"
    assert plan.cells[0].arguments == ("--perf-wait=1800s", kept, "--perf-replicates=5")
    assert plan.cells[2].arguments[:3] == ("--perf-farm=farm:20408", "--perf-farm-wait=1800s", "--perf-wait=1800s")
    assert plan.cells[2].arguments[-2:] == ("--perf-replicates=5", "--threads=4")
    assert (plan.at_once, plan.cell_limit_s, plan.night_limit_s) == ({"host": 1, "attic": 2}, 2700, 28800)
    assert plan.wait_s == 1800


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("night_limit", "nihgt_limit", "field 'nihgt_limit' is unknown; accepted are schema, models, scenarios"),
        ('cell_limit = "45m"', 'cell_limit = "0s"', "expected a time from 1s to 30 days"),
        ("own.gguf", "other.gguf", "models: models/other.gguf: there is no such file"),
        ('"--threads=4"', '"--device=host"', "arguments is '--device=host'"),
        ('"--threads=4"', '"-n2"', "arguments is '-n2'"),
        ('"--threads=4"', '"--farm-wait=2h"', "arguments is '--farm-wait=2h'"),
        ('farm = "farm:20408"', "", "at_once is '2', expected 1 without a farm"),
        ('name = "attic"', 'name = "../attic"', "board.name is '../attic'"),
        ('name = "attic"', 'name = "host"', "occurs twice"),
        (
            'name = "attic"',
            'name = "night.json"',
            "board.name is 'night.json', expected at most 100 characters, and none",
        ),
        ('device = "rubikpi"', 'device = "host"', "board.device is 'host', expected a device that is reached by ssh"),
        ('history = "history"', 'history = "gs://farm/x"', "history = gs://farm/x: is an address, expected a folder"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    """It names the file, the value and what is accepted."""
    assert old in WHOLE
    with pytest.raises(PerfsuiteError) as raised:
        read(tmp_path, WHOLE.replace(old, new, 1))
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_waits_are_told_in_plain_digits(tmp_path: Path) -> None:
    """pytest's option takes no exponent; how long a run waits for quiet is the plan's business, not the night's."""
    text = WHOLE.replace('wait = "30m"', 'wait = "720h"').replace('"--threads=4"', '"--perf-wait-quiet=5m"')
    plan = read(tmp_path, text.replace('history = "history"', 'history = "s3://farm/nights"'))
    assert "--perf-wait=2592000s" in plan.cells[0].arguments
    assert "--perf-history=s3://farm/nights" in plan.cells[0].arguments
    assert plan.cells[2].arguments[-1] == "--perf-wait-quiet=5m"


def test_boards_that_are_one_device_are_one_lane(tmp_path: Path) -> None:
    """Whatever the profiles are called, and whoever logs in; a farm's boards are no lane with anything else."""
    (tmp_path / "devices").mkdir()
    for name, address in (("first", "root@Shelf"), ("second", "ci@shelf"), ("third", "attic")):
        text = f'extends = "generic-ssh"\n[reach]\naddress = "{address}"\n'
        (tmp_path / f"devices/{name}.toml").write_text(text)
    boards = "".join(f'[[board]]\ndevice = "{name}"\n' for name in ("first", "second", "third", "host"))
    farm = '[[board]]\nname = "local"\ndevice = "first"\nfarm = true\n'
    plan = read(tmp_path, f'schema = 1\nmodels = ["smollm2-135m-q8_0"]\nscenarios = ["siso"]\n{boards}{farm}')
    lanes = {cell.board: cell.lane for cell in plan.cells}
    assert lanes["first"] == lanes["second"]
    assert len(set(lanes.values())) == 4
    assert [cell.is_of_farm for cell in plan.cells] == [False] * 4 + [True]


def test_ten_thousand_cells_look_up_each_device_and_each_model_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many boards are of a device; a cell that occurs twice is found among as many."""
    asked: list[str] = []

    def noted(name: str) -> Profile:
        asked.append(name)
        return find_profile(name)

    monkeypatch.setattr(night_plan, "find_profile", noted)
    monkeypatch.setattr(night_plan, "refuse_unknown_model", asked.append)
    scenarios = [f"p{number}-g4" for number in range(1, 101)]
    boards = "".join(f'[[board]]\nname = "b{number}"\ndevice = "host"\n' for number in range(100))
    text = f'schema = 1\nmodels = ["one.gguf"]\nscenarios = {scenarios}\n{boards}'
    assert len(read(tmp_path, text).cells) == 10_000
    assert sorted(asked) == ["host", "one.gguf"]
    with pytest.raises(PerfsuiteError, match=r"the cell b7/one\.gguf-p1-g4 occurs twice; give one of its boards"):
        read(tmp_path, text.replace('"b99"', '"b7"'))
