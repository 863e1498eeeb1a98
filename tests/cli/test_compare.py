"""One command from two names to a verdict."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.measure.engine import find_engine

from ..backend_ops_text import ops_sql
from ..command_streams import Refused


def test_both_sides_are_handed_to_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old side by its option, the new one by the variable; options behind '--' last; the exit code is pytest's."""
    seen: list[Any] = []

    def run(command: list[str], *, env: dict[str, str], check: bool) -> Any:
        seen.append((command, env))
        return subprocess.CompletedProcess(command, 10)

    monkeypatch.setattr("perfsuite.cli.pytest_run.subprocess.run", run)
    folder = str(find_engine().library_dir)
    assert main(["compare", folder, folder, "--quiet", "--", "--perf-budget=3m", "-k", "phase"]) == 10
    ((command, environment),) = seen
    sides = ("--perf-device=host", f"--perf-against={folder}")
    assert command[2:] == ["pytest", *sides, "--perf-budget=3m", "-k", "phase"]
    assert environment == {**os.environ, "LLAMA_CPP_LIB_PATH": folder}


def test_llama_benchs_options_become_pytests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the meaning that it has there, by its short name or its long one."""
    seen: list[list[str]] = []

    def run(command: list[str], **_: object) -> Any:
        seen.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("perfsuite.cli.pytest_run.subprocess.run", run)
    folder = str(find_engine().library_dir)
    words = ["-m", "a.gguf", "-p", "512", "-n", "128", "--n-depth=64", "-fa", "0", "-ctk", "q8_0", "-ub", "256"]
    assert main(["compare", folder, folder, "--quiet", *words]) == 0
    assert seen[0][5:] == [
        *("--perf-model=a.gguf", "--perf-n-prompt=512", "--perf-n-gen=128", "--perf-n-depth=64"),
        *("--perf-ubatch-size=256", "--perf-flash-attn=off", "--perf-cache-type-k=q8_0"),
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["master", "my-branch"], "master: is not a folder, no release and no kept engine; expected a folder"),
        (["0.3.35", "0.3.36", "--build=make"], "--build: says how revisions are built; name their checkout"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], told: str, refused: Refused) -> None:
    """It is reported before anything is compiled."""
    assert told in refused(["compare", *words])


@pytest.mark.parametrize(("ratio", "code"), [(1.2, 1), (1.0, 0)])
def test_files_are_compared_without_measuring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ratio: float, code: int
) -> None:
    """Eight runs of each side in turn; the exit code is that of a run."""
    for name, offset_s, factor in (("old.sql", 0, 1.0), ("new.sql", 1, ratio)):
        rows = [(f"2026-01-01T00:00:{2 * at + offset_s:02}Z", factor * (100 + at % 3)) for at in range(8)]
        (tmp_path / name).write_text(ops_sql(*rows))
    assert main(["compare", str(tmp_path / "old.sql"), str(tmp_path / "new.sql")]) == code
    assert f"1 test, margin 5 %: 1 {'regressed' if code else 'pass'}" in capsys.readouterr().out


def test_single_runs_say_how_many_would_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run of each side is no pair of many."""
    for name in ("old.sql", "new.sql"):
        (tmp_path / name).write_text(ops_sql(("2026-01-01T00:00:01Z", 10.0)))
    assert main(["compare", str(tmp_path / "old.sql"), str(tmp_path / "new.sql")]) == 10
    assert "5 runs of each at least" in capsys.readouterr().out


def test_files_take_no_options_of_a_run(tmp_path: Path, refused: Refused) -> None:
    """What was measured is measured."""
    (tmp_path / "a.sql").write_text(ops_sql(("2026-01-01T00:00:01Z", 10.0)))
    name = str(tmp_path / "a.sql")
    assert "--threads=2: says how builds are measured" in refused(["compare", name, name, "-t", "2"])
    assert "--build: says how builds are measured" in refused(["compare", name, name, "--build=make"])
