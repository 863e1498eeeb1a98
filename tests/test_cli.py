"""The ``perfsuite`` command, with its workers replaced where it would measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfsuite import __version__
from perfsuite.cli import main
from perfsuite.measure.plan import OverheadPlan
from perfsuite.workload.catalog import names
from perfsuite.workload.gguf_metadata import read_gguf

Streams = pytest.CaptureFixture[str]


def refused(arguments: list[str], capsys: Streams) -> str:
    """Run a command that must fail for a reason that a user can act on; return its one line."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("perfsuite: error: ")
    assert err.count("\n") == 1
    return err


def test_a_synthetic_file_is_written(tmp_path: Path, capsys: Streams) -> None:
    """The file has the architecture, the quantisation and the depth that were asked for, and its size is told."""
    path = tmp_path / "x.gguf"
    assert main(["synthesize", "smollm2-135m", "--quant", "q4_0", "--layers", "2", "-o", str(path)]) == 0
    assert read_gguf(path).architecture.n_layers == 2
    assert read_gguf(path).tensor_types["blk.1.ffn_up.weight"] == "Q4_0"
    assert capsys.readouterr().out.startswith(f"{path}: smollm2-135m")
    assert [each.name for each in tmp_path.iterdir()] == ["x.gguf"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["smollm2-135mm"], "did you mean smollm2-135m"),
        (["smollm2-135m", "--quant", "q9_9"], "q9_9"),
        (["smollm2-135m", "--layers", "0"], "n_layers"),
    ],
)
def test_what_cannot_be_synthesized_is_one_line(
    tmp_path: Path, capsys: Streams, arguments: list[str], message: str
) -> None:
    """An unknown architecture or quantisation, and a depth of nothing, leave no file."""
    assert message in refused(["synthesize", *arguments, "-o", str(tmp_path / "x.gguf")], capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: Streams) -> None:
    """A folder that is none is told with the path."""
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "x.gguf"
    assert str(path) in refused(["synthesize", "smollm2-135m", "--layers", "1", "-o", str(path)], capsys)


def test_the_catalogue_is_listed(capsys: Streams) -> None:
    """Every architecture of the catalogue is a row."""
    assert main(["architectures"]) == 0
    rows = capsys.readouterr().out
    assert all(name in rows for name in names())


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[OverheadPlan]:
    """Replace workers by pairs in which the recorder costs a tenth; return the plans that they were given."""
    given: list[OverheadPlan] = []

    def answer(plan: OverheadPlan) -> dict[str, Any]:
        given.append(plan)
        quiet = {"wall_ns": 1, "running_ns": 3, "waiting_ns": 1, "steal_ratio": None, "others_ratio": None}
        return {"plain_ns": [1000] * plan.n_pairs, "recorded_ns": [1100] * plan.n_pairs, "contention": quiet}

    monkeypatch.setattr("perfsuite.cli.run_worker", answer)
    monkeypatch.setattr("perfsuite.cli.materialize", lambda weights, cache_dir: tmp_path / "weights.gguf")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return given


def test_overhead_is_measured_for_each_recorder_and_phase(plans: list[OverheadPlan], capsys: Streams) -> None:
    """There is a row for each, as JSON with the ratio, its bounds and the number of pairs."""
    assert main(["overhead", "--json", "--pairs", "20", "--threads", "3"]) == 0
    rows = json.loads(capsys.readouterr().out)
    expected = [(recorder, phase) for recorder in ("callback", "preload", "cb_eval") for phase in ("decode", "prefill")]
    assert [(row["recorder"], row["phase"]) for row in rows] == expected
    assert [(plan.llama.recorder, plan.phase) for plan in plans[::4]] == expected
    assert len(plans) == 4 * len(expected)
    assert all(row["median_ratio"] == row["upper_ratio"] == pytest.approx(1.1) for row in rows)
    assert all((row["pairs"], row["waiting_ratio"]) == (20, 0.25) for row in rows)
    assert {plan.llama.n_threads for plan in plans} == {3}


def test_overhead_is_told_as_a_table(plans: list[OverheadPlan], capsys: Streams) -> None:
    """Without --json there is a row of percentages for each phase of the recorder that was asked for."""
    assert main(["overhead", "--recorder", "callback"]) == 0
    out = capsys.readouterr().out
    assert out.count("+10.00 %") == out.count("callback") == 2
    assert [plan.n_pairs for plan in plans] == [250] * 4 + [100] * 4


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "nokia3310"], "--device=nokia3310: no such device; known are "),
        (["--model", "smollm2-135m"], "lacks a quantisation"),
        (["--model", "/nowhere/x.gguf"], "/nowhere/x.gguf"),
    ],
)
def test_what_cannot_be_measured_is_one_line(arguments: list[str], message: str, capsys: Streams) -> None:
    """An unknown device, a name without a quantisation and a missing file are told before anything runs."""
    assert message in refused(["overhead", *arguments], capsys)


@pytest.mark.usefixtures("plans")
def test_too_few_pairs_are_one_line(capsys: Streams) -> None:
    """Fewer pairs than a bound needs are a user's mistake."""
    assert "pairs" in refused(["overhead", "--pairs", "3"], capsys)


@pytest.mark.parametrize(
    "arguments",
    [[], ["dance"], ["synthesize", "smollm2-135m"], ["overhead", "--recorder", "none"], ["overhead", "--pairs", "x"]],
)
def test_a_command_that_is_none_is_told_by_its_usage(arguments: list[str], capsys: Streams) -> None:
    """Unknown commands, missing arguments and values out of their choices end with 2 and the usage."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: perfsuite")


def test_the_version_is_told(capsys: Streams) -> None:
    """The version is that of the package."""
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"perfsuite {__version__}\n"


def _raising(error: BaseException) -> Callable[..., None]:
    def instead(*_: object) -> None:
        raise error

    return instead


def test_an_interrupt_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """Ctrl-C ends with 130 and a word, without a traceback."""
    monkeypatch.setattr("perfsuite.cli.names", _raising(KeyboardInterrupt()))
    assert main(["architectures"]) == 130
    assert capsys.readouterr().err == "perfsuite: interrupted\n"


@pytest.mark.parametrize("command", ["architectures", "synthesize"])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, command: str) -> None:
    """A pipe that is closed early, as by head, ends the command in silence."""
    arguments = ["smollm2-135m", "--layers", "1", "-o", str(tmp_path / "x.gguf")] if command == "synthesize" else []
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, "-m", "perfsuite.cli", command, *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
