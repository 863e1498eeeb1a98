"""What a run leaves behind, and what becomes of it when something cannot be written."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.observation import read_observation
from perfsuite.report.history import open_history, runs_of
from tests.fake_device import HostRuns

#: What each run has besides.
USUAL = ("-k", "test_phase")

MODEL = "--model=smollm2-135m-l2-q8_0"
OUTPUTS = "perfsuite.experiments.run_outputs"


@pytest.mark.usefixtures("real_outputs")
def test_a_run_leaves_its_files(runs: HostRuns) -> None:
    result = runs()
    assert result.ret == 0
    run = runs.file()
    assert {each.name for each in (runs.pytester.path / "run").iterdir()} == {
        "run.json",
        "observation.json",
        "report.html",
    }
    (kept,) = (runs.pytester.path / ".perfsuite" / "history").rglob("*.parquet")
    assert run.origin.run_id in kept.name
    assert MODEL.partition("=")[2] in (runs.pytester.path / "run" / "report.html").read_text("utf-8")
    result.stdout.fnmatch_lines([f"*{runs.pytester.path / 'run' / 'report.html'}*"])


def test_the_observation_has_what_the_run_saw(runs: HostRuns) -> None:
    runs("--perf-replicates=5")
    seen = read_observation(runs.pytester.path / "run")
    assert [len(each.samples_ns) for each in seen.tokens] == [5] * 24
    assert [each.phase for each in seen.timelines] == [each.phase for each in seen.graphs] == ["prefill", "decode"]
    assert [(each.group, each.is_valid) for each in seen.states] == [("llama", True)] * 5
    judged = {each.case_id for each in runs.file().judgements}
    assert {each.case_id for each in seen.works} <= judged
    decode = next(each for each in seen.works if each.case_id.endswith("/decode"))
    assert 0.5 < (decode.operational_intensity or 0.0) < 4.0


def test_pairs_show_their_new_side(runs: HostRuns) -> None:
    runs("--against-args=threads=1")
    seen = read_observation(runs.pytester.path / "run")
    assert [len(each.samples_ns) for each in seen.tokens] == [6] * 24
    assert [each.is_valid for each in seen.states] == [True] * 6
    assert [each.phase for each in seen.timelines] == ["prefill", "decode"]


def test_contended_replicates_are_states_alone(runs: HostRuns) -> None:
    """Where none was valid, the machine's states tell why, and nothing is drawn of what was measured."""
    runs.device.contended = True
    runs("--perf-replicates=3")
    seen = read_observation(runs.pytester.path / "run")
    assert [each.is_valid for each in seen.states] == [False] * 3
    assert all((each.waiting_ratio or 0.0) > 0.4 for each in seen.states)
    assert (seen.tokens, seen.timelines, seen.graphs) == ((), (), ())


def test_what_is_switched_off_is_not_written(runs: HostRuns) -> None:
    """Nor does the page of an earlier run stay in the folder, which would show another run."""
    runs("--perf-history=off", "--baseline=off")
    assert (runs.pytester.path / "run" / "report.html").exists()
    runs("--perf-report=off", "--perf-history=off", "--baseline=off")
    assert {each.name for each in (runs.pytester.path / "run").iterdir()} == {"run.json", "observation.json"}
    assert not (runs.pytester.path / ".perfsuite").exists()


@pytest.mark.parametrize(
    ("kind", "writer", "line"),
    [
        (OSError, "write_observation", "observation.json: not written (no room); the report has what it would hold"),
        (ZeroDivisionError, "write_report", "report.html: not written (no room); make it with 'perfsuite report *run'"),
        (KeyboardInterrupt, "write_report", "report.html: not written (interrupted); make it with *"),
        (PerfsuiteError, "append_history", "history in *: not written (no room); add it with 'perfsuite history add *"),
    ],
)
def test_what_fails_is_one_line_and_loses_nothing(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, writer: str, line: str, kind: type[BaseException]
) -> None:
    """A full disk or a defect costs neither run.json nor the verdict; the line says how to have it later."""
    monkeypatch.setattr(f"{OUTPUTS}.{writer}", Mock(side_effect=kind("no room\nat all")))
    result = runs()
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"  {line}"])
    if writer == "write_report":
        result.stdout.no_fnmatch_line("*run.json, *report.html")
    assert len(runs.file().judgements) > 5


@pytest.mark.usefixtures("real_outputs")
def test_the_history_has_every_run(runs: HostRuns) -> None:
    """One that was slowed down on purpose is marked as such, so that trends leave it out."""
    runs("--perf-history=all", "--perf-report=off")
    runs("--perf-history=all", "--perf-report=off", "--perf-inject=ffn_up=2", "--baseline=off")
    history = open_history(runs.pytester.path / "all")
    found = runs_of(history)
    assert sorted(each.is_injected for each in found) == [False, True]


def test_no_earlier_observation_stays_beside_a_new_run(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the new one cannot be written there is none, for the earlier one tells of another run."""
    runs()
    assert (runs.pytester.path / "run" / "observation.json").exists()
    monkeypatch.setattr(f"{OUTPUTS}.write_observation", Mock(side_effect=OSError("no room")))
    runs()
    assert not (runs.pytester.path / "run" / "observation.json").exists()
