"""Runs as pytest-benchmark's own command reads them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from perfsuite.records.run_file import RunFile
from perfsuite.report.exports.pytest_benchmark import pytest_benchmark_text
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

from .conftest import WORDS, run_of

RUN = synthetic_run(names=HOSTILE_NAMES)


def _plain(run: RunFile) -> dict[str, Any]:
    return dict(json.loads(pytest_benchmark_text(run)))


def _command(*arguments: str, folder: Path) -> str:
    command = [sys.executable, "-m", "pytest_benchmark", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "Failed to load" not in done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A folder with two exports, whose phases took longer in the second."""
    (tmp_path / "old.json").write_text(pytest_benchmark_text(RUN), encoding="utf-8")
    slower = synthetic_run(names=HOSTILE_NAMES, seed=1, change_ratio=1.5)
    (tmp_path / "new.json").write_text(pytest_benchmark_text(slower), encoding="utf-8")
    return tmp_path


def test_the_command_compares_two_runs(exported: Path) -> None:
    """``compare`` lists every case that has samples once for each run, and writes their figures as CSV."""
    told = _command("compare", "old.json", "new.json", "--csv=both", "--sort=fullname", folder=exported)
    assert "benchmark 'phase': 14 tests" in told
    with (exported / "both.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    measured = {each.case_id: each for each in RUN.judgements if each.samples_ns}
    assert sorted(row["name"] for row in rows) == sorted([*measured, *measured])
    decode = [float(row["median"]) for row in rows if row["name"] == "phase/smollm2-135m-q8_0/siso/decode"]
    assert min(decode) == pytest.approx(measured["phase/smollm2-135m-q8_0/siso/decode"].measured_ns / 1e9)
    assert max(decode) / min(decode) == pytest.approx(1.5, rel=0.1)


def test_pytest_compares_with_an_export(pytester: pytest.Pytester) -> None:
    """``--benchmark-compare`` puts the case of an export beside the benchmark of this name."""
    run = synthetic_run(n_cases=7)
    pytester.path.joinpath("old.json").write_text(pytest_benchmark_text(run), encoding="utf-8")
    pytester.makepyfile(
        f"""
        def test_decode(benchmark):
            benchmark.name = benchmark.fullname = {run.judgements[1].case_id!r}
            benchmark.group = "phase"
            benchmark.pedantic(lambda: None, rounds=2)
        """
    )
    done = pytester.runpytest_subprocess("--benchmark-compare=old.json", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*benchmark 'phase': 2 tests*", f"{run.judgements[1].case_id} (*old*)*"])


@given(WORDS)
@settings(max_examples=40, deadline=None)
def test_words_of_a_run_are_read_back(words: str) -> None:
    run = run_of(words)
    read = {each["fullname"]: each["extra_info"]["reason"] for each in _plain(run)["benchmarks"]}
    assert read == {each.case_id: words for each in run.judgements if each.samples_ns}
