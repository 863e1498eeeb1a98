"""A folder for a device that only runs what is uploaded, without a llama.cpp."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from perfsuite import __version__
from perfsuite.cli.bundle import RUN_SCRIPT
from perfsuite.device.machine import NO_CONDITIONS
from perfsuite.errors import AskedError
from perfsuite.measure.board.folder_board import answered_board, planned_board
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.plan import SCHEMA, LlamaPlan
from perfsuite.records.bundle import WORKER, content_digest, listed_files, read_manifest, write_manifest
from perfsuite.records.job import BOARD, BUNDLES, PLACE, REQUESTS, SCRIPT, Asked, Job, sha256, write_job

from .cli.test_devices_setup import plant_bundle

#: What a run of llama.cpp asks; there is none in the bundle, so it fails, and says so.
PLAN = LlamaPlan(
    gguf_path=str(PLACE / "weights/none.gguf"),
    library_dir=str(PLACE / BUNDLES / BOARD / "engine"),
    engine_build_id="0123456789abcdef",
    cache_dir=str(PLACE / "cache"),
    n_threads=1,
    n_prompt=1,
    n_gen=1,
)


def claim(locks: Path) -> Claim:
    return Claim(name="board", user="ada", host="desk", run_id="run-1", purpose="a test", lock_folder=str(locks))


def plan_job(folder: Path, program: Path, *, n_runs: int = 2) -> Job:
    """Write a folder that asks for what a device is, and for so many runs."""
    bundle = folder / BUNDLES / BOARD
    (folder.parent / "locks").mkdir(exist_ok=True)
    plant_bundle(bundle)
    shutil.copyfile(program, bundle / WORKER)
    (bundle / WORKER).chmod(0o755)
    files = listed_files(bundle, (WORKER,))
    write_manifest(
        bundle, replace(read_manifest(bundle), files=files, digest=content_digest(files), plan_schema=SCHEMA)
    )
    board = planned_board(folder, NO_CONDITIONS, claim(folder.parent / "locks"), n_pairs=8, cache_dir=folder / "desk")
    board.open()
    for seed in range(n_runs):
        with suppress(AskedError):
            board.run(replace(PLAN, layout_seed=seed + 1))
    paths = sorted((folder / REQUESTS).iterdir())
    job = Job(
        suite_version=__version__,
        plan_schema=SCHEMA,
        device="board",
        pytest_arguments=("--device=board",),
        target="test-linux-gnu",
        bundle_digest=content_digest(files),
        requests=tuple(Asked(name=path.name, sha256=sha256(path.read_bytes())) for path in paths),
    )
    write_job(folder, job)
    (folder / SCRIPT).write_text(RUN_SCRIPT)
    return job


def run_job(folder: Path, *words: str) -> str:
    """Run a folder as a farm does: in an empty environment, from somewhere else; return what it said.

    Only its lock is not this machine's, so that it contends with no run here.
    """
    command = ["env", "-i", f"PERFSUITE_LOCK_DIR={folder.parent}", "sh", str(folder / SCRIPT), *words]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ingested(folder: Path, results: Path | None = None) -> RemoteBoard:
    """Return the board that answers with what came back, open."""
    board = answered_board(folder, results, NO_CONDITIONS, claim(folder.parent / "locks"), cache_dir=folder / "desk")
    board.open()
    return board
