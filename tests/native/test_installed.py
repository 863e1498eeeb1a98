"""The native part as the wheel holds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite import __version__
from perfsuite.measure.launch import FAILURE_MARK
from perfsuite.measure.native import PROBE_LIBRARY, native_dirs
from perfsuite.measure.plan import SCHEMA, Plan, ProbePlan, dump_plan, load_record
from perfsuite.records.bundle import WORKER
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.codec import pack, unpack

from .conftest import NATIVE, run

PLAN_NAME, RECORD_NAME = "plan.msgpack", "record.msgpack"

#: What is compiled on the device, and the headers.
SOURCES = ("bpf", "include", "src")


@pytest.fixture(scope="module")
def installed() -> Path:
    """Return the folder of native files of the suite that the tests run."""
    return next(place for place in native_dirs() if (place / WORKER).exists())


def test_install_holds_what_is_built_and_the_sources_for_the_device(installed: Path) -> None:
    """Beside libraries and worker lie all headers and the sources of what is compiled there, in the same folders."""
    sources = [path for part in SOURCES for path in (NATIVE / part).rglob("*") if path.is_file()]
    found = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    built = {path for path in found if path.suffix == ".so"} | {Path(WORKER)}
    assert found - built == {path.relative_to(NATIVE) for path in sources}
    assert Path(PROBE_LIBRARY) in built


def test_a_wheel_holds_completion_and_the_man_page() -> None:
    """They lie where shells and man look below a prefix, which is where a wheel's data goes."""
    data, share = Path(sys.prefix, "share"), NATIVE.parent / "share"
    paths = [path.relative_to(share) for path in share.rglob("*") if path.is_file()]
    assert [(data / path).read_bytes() for path in paths] == [(share / path).read_bytes() for path in paths]


def _worker(installed: Path, plan: Plan, folder: Path) -> tuple[int, str]:
    (folder / PLAN_NAME).write_bytes(dump_plan(plan))
    options = (f"--probe-library={installed / PROBE_LIBRARY}",)
    command = [str(installed / WORKER), "run", str(folder / PLAN_NAME), str(folder / RECORD_NAME), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_the_worker_measures_this_machine(installed: Path, tmp_path: Path) -> None:
    """Library and worker agree: every ceiling comes out positive, and the record is one of this suite."""
    assert _worker(installed, ProbePlan(cache_dir="", n_threads=2, budget_ms=60), tmp_path) == (0, "")
    ceilings = Ceilings.from_plain(load_record((tmp_path / RECORD_NAME).read_bytes(), "probes")["ceilings"])
    assert ceilings.n_threads == 2
    assert min(ceilings.fp32_flops_per_s, ceilings.int8_flops_per_s, ceilings.dispatch_ns) > 0


def test_a_refusal_is_told_in_the_librarys_words(installed: Path, tmp_path: Path) -> None:
    """More threads than a probe knows are one marked line that says so, and no record is left."""
    code, said = _worker(installed, ProbePlan(cache_dir="", n_threads=5000, budget_ms=10), tmp_path)
    assert (code, said.lstrip("\n").startswith(FAILURE_MARK)) == (1, True)
    assert "with 5000 threads: an argument is out of its range" in said
    assert {path.name for path in tmp_path.iterdir()} == {PLAN_NAME}


def test_the_worker_tells_its_version(installed: Path) -> None:
    """It was built as this suite's, for the plans that this suite writes; another verb shows how it is used."""
    worker = str(installed / WORKER)
    assert run([worker, "--version"]) == f"perfsuite-worker {__version__} (plans of schema {SCHEMA})\n"
    done = subprocess.run([worker, "dance"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.startswith("usage: perfsuite-worker run PLAN RECORD")) == (2, True)


def test_a_plan_that_is_none_of_this_suite_is_refused(installed: Path, tmp_path: Path) -> None:
    """Of another version or schema, cut short, or of a task that takes Python: one marked line each."""
    plain = unpack(dump_plan(ProbePlan(cache_dir="", n_threads=1, budget_ms=10)))
    for content, why in (
        (pack({**plain, "suite_version": "0.0.0"}), "made by perfsuite 0.0.0"),
        (pack({**plain, "schema": 99}), "plan has schema 99"),
        (pack(plain)[:-1], "a message is cut short"),
        (pack({**plain, "task": "kernels"}), "takes Python, by which no board is measured"),
    ):
        (tmp_path / "plan").write_bytes(content)
        command = [str(installed / WORKER), "run", str(tmp_path / "plan"), str(tmp_path / "record")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout.lstrip("\n")[: len(FAILURE_MARK)]) == (1, FAILURE_MARK)
        assert why in done.stdout
