"""The tool that takes a bare board through the tutorial."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from perfsuite.cli.whole_parser import whole_parser
from perfsuite.device.reach import Reach
from perfsuite.errors import MeasurementError

from .loaded_tool import loaded_tool


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """Return the tool as a module."""
    return loaded_tool("first_board")


def test_sides_with_the_same_cases_are_equal_whatever_their_outcomes(tool: ModuleType) -> None:
    """Cases count by their ids; how many cannot be trusted is reported."""
    told, is_equal = tool.compared({"a": "new", "b": "invalid"}, {"b": "new", "a": "slow"})
    assert is_equal
    assert told == "2 cases over ssh (1 invalid), 2 here (0 invalid): the same"


def test_a_case_of_one_side_alone_is_named(tool: ModuleType) -> None:
    """What only one side has is a line of its own, and the sides differ."""
    told, is_equal = tool.compared({"a": "new", "b": "new"}, {"a": "new", "c": "new"})
    assert not is_equal
    assert told.splitlines()[:2] == ["only over ssh: b", "only here: c"]


def test_no_cases_at_all_are_not_the_same_cases(tool: ModuleType) -> None:
    """Two empty runs show nothing."""
    assert not tool.compared({}, {})[1]


def test_a_run_that_left_nothing_is_an_error(tool: ModuleType, tmp_path: Path) -> None:
    """The side is named whose run cannot be read."""
    (tmp_path / "ssh").mkdir()
    with pytest.raises(MeasurementError, match=r"run\.json of the run over ssh"):
        tool.cases_of(tmp_path / "ssh" / "run.json")
    (tmp_path / "ssh" / "run.json").write_text(json.dumps({"cases": [{"id": "a", "outcome": "new"}]}))
    assert tool.cases_of(tmp_path / "ssh" / "run.json") == {"a": "new"}


def test_a_step_that_fails_ends_it_with_what_was_said(tool: ModuleType, tmp_path: Path) -> None:
    """The exit code and the output of the command are in the error; an accepted exit code is none."""
    failing = ("-c", "print('no room'); raise SystemExit(3)")
    with pytest.raises(MeasurementError, match="setup: exit code 3\nno room"):
        tool.take(tool.Step(title="setup", words=failing), tmp_path)
    tool.take(tool.Step(title="setup", words=failing, accepted=(3,)), tmp_path)


def test_the_commands_are_ones_that_there_are(tool: ModuleType) -> None:
    """The parsers of the suite take what is typed on the way."""
    reach = Reach(way="ssh", address="me@127.0.0.1", port=2222, identity_file="key", known_hosts_file="hosts")
    walks = (tool.keeping_steps(reach), tool.first_steps(reach, ()), tool.steps(reach, ("-k", "phase")))
    typed = [step.words for walk in walks for step in walk]
    for words in typed:
        if words[1] == "perfsuite.cli":
            whole_parser().parse_args(words[2:])
    assert [words[-4:] for words in typed if words[1] == "pytest"] == [
        ("--scenario=p16-g4", "--perf-replicates=2", "--perf-calibrate=off", "-kphase"),
        ("--baseline=off", "--perf-dir=ssh", "-k", "phase"),
        ("--perf-dir=local", "-k", "phase", "--perf-address=local"),
    ]


def test_a_board_that_cannot_be_had_is_an_error(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The board is named with what is missing, and nothing is typed."""
    monkeypatch.setattr("tests.arm_root.find_arm_root", lambda: "there is no Debian for arm64")
    monkeypatch.setattr("tests.board_namespaces.board_obstacle", lambda: None)
    assert tool.main(["--board=arm64"]) == 2
    assert "error: --board=arm64: there is no Debian for arm64" in capsys.readouterr().err
