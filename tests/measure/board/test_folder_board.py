"""A device that only runs what is uploaded answers as one at the end of a link."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import DeviceError, EngineError, MeasurementError, UnansweredError
from perfsuite.measure.board.folder_answers import Plan
from perfsuite.records.codec import pack, unpack
from perfsuite.records.job import ENDED, RESULTS, read_job, sha256, write_job

from ...planned_job import PLAN, ingested, plan_job, run_job


@pytest.fixture(scope="module")
def ran(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("farm") / "a job with 'quotes'"
    folder.mkdir()
    plan_job(folder, program)
    run_job(folder)
    return folder


@pytest.fixture
def job(ran: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ran, tmp_path / "job", symlinks=True))


def test_each_run_is_answered_once(job: Path) -> None:
    board = ingested(job)
    for seed in (7, 8):
        with pytest.raises(MeasurementError, match=r"libllama|gguf|engine") as failed:
            board.run(replace(PLAN, layout_seed=seed))
        assert not isinstance(failed.value, UnansweredError)
    with pytest.raises(UnansweredError, match="2 of the 2 runs of the plan came back"):
        board.run(PLAN)


def test_another_plan_is_not_answered(job: Path) -> None:
    with pytest.raises(UnansweredError, match="the plan has no such run; measure it over a link"):
        ingested(job).run(replace(PLAN, n_threads=3))


def test_what_depends_on_the_device_cannot_be_planned(tmp_path: Path) -> None:
    """What the OpenCL device is, and what is in a folder there, only the device can say."""
    plan = Plan(folder=tmp_path, architecture="aarch64", n_pairs=8)
    with pytest.raises(EngineError, match="needs to know its device beforehand"):
        plan.answer("digests", {"folder": "/lib"})
    with pytest.raises(DeviceError, match="needs answers while it runs"):
        plan.answer("run_folder", {})


def test_a_run_that_was_ended_goes_on(job: Path) -> None:
    """What has an answer is not asked for again; what was cut is."""
    names = sorted(path.name for path in (job / RESULTS).iterdir())
    kept, cut, lost = (job / RESULTS / name for name in names[-4:-1])
    cut.write_bytes(cut.read_bytes()[:40])
    lost.unlink()
    before = kept.stat().st_mtime_ns
    said = run_job(job)
    assert kept.stat().st_mtime_ns == before
    assert f" {kept.name}\n" not in said
    ingested(job).facts()
    assert sorted(path.name for path in (job / RESULTS).iterdir()) == names


def test_answers_may_lie_elsewhere(job: Path, tmp_path: Path) -> None:
    """A farm that takes files from another folder names it."""
    shutil.rmtree(job / RESULTS)
    run_job(job, str(tmp_path / "back"))
    assert ingested(job, tmp_path / "back").facts().hostname == platform.node()


def _changed(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], object]:
    def write(results: Path) -> None:
        plain = unpack((results / "0001").read_bytes())
        (results / "0001").write_bytes(pack({**plain, **change(plain)}))

    return write


def _a_link(results: Path) -> None:
    (results / "0001").unlink()
    (results / "0001").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_changed(lambda plain: {"message": plain["message"] + b"x"}), "was altered"),
        (lambda results: shutil.copyfile(results / "0002", results / "0001"), "answers another plan"),
        (_changed(lambda plain: {"device": "another"}), "answers of 2 devices"),
        (lambda results: os.truncate(results / "0001", 30), "was cut"),
        (_changed(lambda plain: {"message": pack([1, 2]), "sha256": sha256(pack([1, 2]))}), "holds no message"),
        (lambda results: (results / "passwd").write_text("x"), "passwd is not an answer of this plan"),
        (_a_link, "0001 is not an answer of this plan"),
        (lambda results: os.truncate(results / "0001", 300 << 20), "has more than"),
        (lambda results: [path.unlink() for path in results.iterdir()], "holds no answer"),
    ],
)
def test_what_no_device_has_answered_is_refused(job: Path, change: Callable[[Path], object], told: str) -> None:
    change(job / RESULTS)
    with pytest.raises(MeasurementError, match=told) as refused:
        ingested(job)
    assert "\n" not in str(refused.value)


def test_a_folder_of_another_device_is_refused(job: Path) -> None:
    write_job(job, replace(read_job(job), device="other"))
    with pytest.raises(DeviceError, match="is for other, not for board"):
        ingested(job)


def test_a_request_that_was_changed_is_refused(job: Path) -> None:
    (job / "requests" / "0001").write_bytes(b"x")
    with pytest.raises(DeviceError, match=r"job.json says"):
        ingested(job)


@pytest.mark.parametrize(
    ("field", "said", "words"),
    [
        ("name", '"0001"', ('"../0001"', '"/etc/passwd"', '"0001/x"', '""')),
        ("pytest_arguments", "--device=board", ("-pevil", "--rootdir=/x", "conftest.py", "-c/x")),
        ("pytest_arguments", "--device=board", ("--perf-dir=/x", "--perf-history=/x", "--perf-results=/x")),
        ("pytest_arguments", "--device=board", ("--baseline-dir=/x", "--perf-baseline-dir=/x", "--perf-farm-break=x")),
        ("pytest_arguments", "--device=board", ("--baseline=record", "--perf-baseline=record")),
    ],
)
def test_a_manifest_leads_nowhere_and_brings_no_code(job: Path, field: str, said: str, words: tuple[str, ...]) -> None:
    """Requests are numbers; pytest loads nothing of a folder, which says not where it writes; you may, behind '--'."""
    text = (job / "job.json").read_text()
    for word in words:
        (job / "job.json").write_text(text.replace(said, word))
        with pytest.raises(DeviceError, match=field):
            read_job(job)


def test_the_last_word_is_heard(job: Path) -> None:
    """What restoring the device came to is known when the board is closed."""
    assert (job / RESULTS / ENDED).is_file()
    board = ingested(job)
    board.close()
    assert board.held().problems == ()
