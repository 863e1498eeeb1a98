"""A device that only runs what is uploaded answers as one at the end of a link."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

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


def test_the_device_is_the_one_that_ran_it(job: Path) -> None:
    facts = ingested(job).facts()
    assert facts.hostname == platform.node()
    assert facts.usable_threads == len(os.sched_getaffinity(0))


def test_each_run_is_answered_once(job: Path) -> None:
    """Two runs came back, whatever was drawn for them, and the third is stated to be missing."""
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


def _altered(results: Path) -> None:
    plain = unpack((results / "0001").read_bytes())
    (results / "0001").write_bytes(pack({**plain, "message": plain["message"] + b"x"}))


def _of_another_plan(results: Path) -> None:
    shutil.copyfile(results / "0002", results / "0001")


def _of_two_devices(results: Path) -> None:
    plain = unpack((results / "0001").read_bytes())
    (results / "0001").write_bytes(pack({**plain, "device": "another"}))


def _cut(results: Path) -> None:
    (results / "0001").write_bytes((results / "0001").read_bytes()[:30])


def _of_other_types(results: Path) -> None:
    (results / "0001").write_bytes(pack({"schema": 1, "request": 3, "device": [], "sha256": "", "message": "x"}))


def _no_message(results: Path) -> None:
    plain = unpack((results / "0001").read_bytes())
    message = pack([1, 2])
    (results / "0001").write_bytes(pack({**plain, "message": message, "sha256": sha256(message)}))


def _foreign(results: Path) -> None:
    (results / "passwd").write_text("x")


def _a_link(results: Path) -> None:
    (results / "0001").unlink()
    (results / "0001").symlink_to("/etc/passwd")


def _huge(results: Path) -> None:
    os.truncate(results / "0001", 300 << 20)


def _empty(results: Path) -> None:
    for path in results.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_altered, "was altered"),
        (_of_another_plan, "answers another plan"),
        (_of_two_devices, "answers of 2 devices"),
        (_cut, "was cut"),
        (_of_other_types, "expected"),
        (_no_message, "holds no message"),
        (_foreign, "passwd is not an answer of this plan"),
        (_a_link, "0001 is not an answer of this plan"),
        (_huge, "is the most"),
        (_empty, "holds no answer"),
    ],
)
def test_what_no_device_has_answered_is_refused(job: Path, change: Callable[[Path], None], told: str) -> None:
    change(job / RESULTS)
    with pytest.raises(MeasurementError, match=told) as refused:
        ingested(job)
    assert "\n" not in str(refused.value)


def test_a_folder_of_another_device_is_refused(job: Path) -> None:
    """A folder says whom it is for."""
    write_job(job, replace(read_job(job), device="other"))
    with pytest.raises(DeviceError, match="is for other, not for board"):
        ingested(job)


def test_a_request_that_was_changed_is_refused(job: Path) -> None:
    """The manifest has the hash of each request."""
    (job / "requests" / "0001").write_bytes(b"x")
    with pytest.raises(DeviceError, match=r"job.json says"):
        ingested(job)


def test_a_manifest_that_leads_elsewhere_is_refused(job: Path) -> None:
    """A request is named by a number, and by nothing else."""
    text = (job / "job.json").read_text()
    for name in ("../0001", "/etc/passwd", "0001/x", ""):
        (job / "job.json").write_text(text.replace('"0001"', f'"{name}"'))
        with pytest.raises(DeviceError, match="name"):
            read_job(job)


def test_a_manifest_brings_no_code_and_names_no_place(job: Path) -> None:
    """A folder from elsewhere has pytest load nothing, and says not where it writes; you may, behind '--'."""
    text = (job / "job.json").read_text()
    for word in (
        *("-pevil", "--rootdir=/x", "conftest.py", "-c/x"),
        *("--perf-dir=/x", "--perf-history=/x", "--baseline-dir=/x", "--perf-baseline-dir=/x"),
        *("--baseline=record", "--perf-baseline=record", "--perf-results=/x", "--perf-farm-break=x"),
    ):
        (job / "job.json").write_text(text.replace("--device=board", word))
        with pytest.raises(DeviceError, match="pytest_arguments"):
            read_job(job)


def test_the_last_word_is_heard(job: Path) -> None:
    """What restoring the device came to is known when the board is closed."""
    assert (job / RESULTS / ENDED).is_file()
    board = ingested(job)
    board.close()
    assert board.held().problems == ()
