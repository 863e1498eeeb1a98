"""A board is calibrated from a desk, over real ssh, and runs over the link forecast by it; workers are replaced."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.measure.board.identity import board_identity
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.ceiling_store import find_calibration, stored_ceilings
from perfsuite.measure.environment import environment_engine
from perfsuite.records.bundle import WORKER
from perfsuite.workload.weights import Weights

from .board_links import write_profile
from .board_loopback import LoopbackBoard
from .board_namespaces import ROOT
from .synthetic_calibration import N_THREADS

_CALIBRATE = ("calibrate", "--device=bench", f"--threads={N_THREADS}", "--type=q8_0", "--rounds=1")


#: Runs pytest as `place_nothing` lets it.
_RUN = f"""
import sys, pytest
sys.path.insert(0, {str(ROOT)!r})
from perfsuite.measure.board.remote_board import RemoteBoard
from tests.test_board_calibration import place_nothing
RemoteBoard.place_weights = place_nothing
sys.exit(pytest.main(sys.argv[1:]))
"""


def place_nothing(board: RemoteBoard, weights: Weights) -> Path:
    """Name the file as the law has it; its workers read none."""
    return Path("/nowhere") / f"{weights.name}.gguf"


@pytest.fixture
def bench(
    loopback_board: LoopbackBoard, own_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LoopbackBoard:
    """Return a board whose workers follow a law; no weights are put there, for they would read none."""
    home = loopback_board.home
    python, root, worker = (shlex.quote(str(each)) for each in (sys.executable, ROOT, home / "worker"))
    asked = "for each; do plan=$last last=$each; done"
    _script(home / "worker", f"{asked}\ncd {root} && exec {python} -m tests.synthetic_calibration_run $plan $last")
    place = home / ".local/share/perfsuite/bundle"
    shutil.copytree(own_bundle, place / "own")
    (place / "own" / WORKER).rename(place / "own" / "program")
    cache = f"XDG_CACHE_HOME={shlex.quote(str(home / 'cache'))}"
    _script(place / "own" / WORKER, f'{cache} exec {shlex.quote(str(place))}/own/program "$@" --worker={worker}')
    (place / "current").symlink_to("own")
    monkeypatch.setattr(RemoteBoard, "place_weights", place_nothing)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_profile(tmp_path / "devices" / "bench.toml", loopback_board.reach())
    return loopback_board


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _header(selection: str = "nothing") -> str:
    """Return what a run that takes the board, and by default measures nothing, says on what its forecasts stand."""
    words = ["--device=bench", f"--threads={N_THREADS}", f"-k{selection}", "--baseline=off", "-pno:cacheprovider"]
    command = [sys.executable, "-c", _RUN, *words, "-pno:labgrid"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = re.search("perfsuite: forecasts from (.*)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    return found[1]


@pytest.mark.long
def test_a_calibration_over_a_link_serves_the_runs_over_it(
    bench: LoopbackBoard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is measured on the board, kept at the desk under the board's identity, and found by the next run alone."""
    assert _header().startswith("a quick calibration, which is made before")
    assert main([*_CALIBRATE]) == 0
    told = capsys.readouterr().err
    assert f"calibrate: stored in {tmp_path / 'cache'}" in told
    build_id, cache_dir = environment_engine().build_id, tmp_path / "cache" / "perfsuite"
    found = find_calibration(host_fingerprint(), build_id, N_THREADS, cache_dir, board=board_identity())
    assert found is not None
    assert find_calibration(host_fingerprint(), build_id, N_THREADS, cache_dir) is None
    assert stored_ceilings(host_fingerprint(), N_THREADS, cache_dir, board=board_identity()) is not None
    assert stored_ceilings(host_fingerprint(), N_THREADS, cache_dir) is None
    assert _header() == f"calibration of {found.recorded_at}"
    assert not list(bench.home.glob("cache/perfsuite/calibrations/*"))


@pytest.mark.long
def test_a_quick_calibration_is_made_on_the_board(bench: LoopbackBoard, tmp_path: Path) -> None:
    assert _header("test_phase").startswith("a quick calibration, which is made before")
    (kept,) = (tmp_path / "cache" / "perfsuite" / "calibrations").iterdir()
    found = Calibration.from_plain(json.loads(kept.read_text()))
    assert found.is_quick
    assert _header().startswith(f"a quick calibration of {found.recorded_at}")
    assert not list(bench.home.glob("cache/perfsuite/calibrations/*"))
