"""A run that is planned here, runs there without this desk, and is judged here: by the commands that a user types."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.measure.bundle import making
from perfsuite.records.job import RESULTS

from ..own_bundle import own_engine
from ..planned_job import run_job

pytestmark = pytest.mark.measures

_PROFILE = """
description = "a machine like this one"
extends = "generic-ssh"

# What others do on this machine meanwhile is to decide nothing.
[judging]
max_waiting_ratio = 0.99
max_others_ratio = 0.99
ceiling_spread_ratio = 0.99
"""

_OPTIONS = (
    *("--device=there", "--model=smollm2-135m-l2-q8_0", "--scenario=p4-g2", "--threads=1", "--perf-replicates=3"),
    *("--perf-calibrate=off", "-kphase"),
)

#: Of the last answers: with so few that are left, two replicates have come back.
N_LOST = 7

#: As many as the first look takes; a run that wants more judges by these.
N_PAIRS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What the run came to that judged what came back."""

    status: int
    output: str
    record: dict[str, Any]

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcomes of its cases."""
        return {each["id"]: each["outcome"] for each in self.record["cases"]}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the profile of the device, and a plan for it whose llama.cpp is this machine's."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "devices").mkdir()
    (folder / "devices" / "there.toml").write_text(_PROFILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        engine = own_engine(folder / "engine")
        patch.setattr(making, "build_engine", lambda *_: engine)
        assert main(["bundle", "--quiet", "--plan", "-o", "job", "--", *_OPTIONS]) == 0
        planned = ["bundle", "--quiet", "--plan", "--old-llama", version("llama-cpp-python"), "-o", "pairs"]
        assert main([*planned, "--", *_OPTIONS, f"--perf-plan-pairs={N_PAIRS}"]) == 0
    for name in ("job", "pairs"):
        run_job(folder / name)
    return folder


@pytest.fixture
def ingest(desk: Path, tmp_path: Path) -> Callable[..., Ingested]:
    """Return what judges what came back."""

    def judged(*words: str, name: str = "job", options: tuple[str, ...] = ()) -> Ingested:
        command = [sys.executable, "-m", "perfsuite.cli", "ingest", name, *words, "--", "--baseline=off"]
        command += ["-pno:cacheprovider", f"--perf-dir={tmp_path / 'run'}", *options]
        done = subprocess.run(command, cwd=desk, capture_output=True, text=True, timeout=120, check=False)
        path = tmp_path / "run" / "run.json"
        record = json.loads(path.read_text()) if path.exists() else {"cases": []}
        return Ingested(status=done.returncode, output=done.stdout + done.stderr, record=record)

    return judged


def test_what_came_back_is_judged(ingest: Callable[..., Ingested]) -> None:
    found = ingest()
    assert found.status == 0, found.output
    assert set(found.outcomes.values()) == {"new"}
    assert {len(each["samples_ns"]) for each in found.record["cases"]} == {3}


def test_what_did_not_come_back_is_invalid(ingest: Callable[..., Ingested], desk: Path, tmp_path: Path) -> None:
    """A farm that took the device away has left less, and the cases say so."""
    results = tmp_path / "results"
    shutil.copytree(desk / "job" / RESULTS, results)
    answers = sorted(path for path in results.iterdir() if path.name.isdigit())
    for path in answers[-N_LOST:]:
        path.unlink()
    found = ingest(f"--results={results}")
    assert found.status == 1, found.output
    assert set(found.outcomes.values()) == {"invalid"}
    assert all(": 4 of the 7 runs of the plan came back" in each["reason"] for each in found.record["cases"])


def test_a_device_that_has_run_nothing_is_refused(ingest: Callable[..., Ingested], desk: Path, tmp_path: Path) -> None:
    """It has said what it is, and then was taken away: one line says so."""
    results = tmp_path / "results"
    shutil.copytree(desk / "job" / RESULTS, results)
    for path in results.iterdir():
        if path.name.isdigit() and path.name > "0003":
            path.unlink()
    found = ingest(f"--results={results}")
    assert (found.status, found.record["cases"]) == (4, [])
    assert "0 of the 7 runs of the plan came back, and no further one answers; run the folder again" in found.output


def test_two_builds_take_turns_there(ingest: Callable[..., Ingested]) -> None:
    """Both are in the folder; every phase has the pairs that were planned, or all but one that others disturbed."""
    found = ingest(name="pairs")
    assert found.status in (0, 1, 6), found.output
    assert set(found.outcomes.values()) <= {"pass", "inconclusive", "slower", "faster"}
    (n_pairs,) = {len(each["samples_ns"]) for each in found.record["cases"]}
    assert n_pairs in (N_PAIRS - 1, N_PAIRS)
