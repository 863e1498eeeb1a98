"""The files for farms: each is run as the farm does, beside a stand-in, and what comes back is read."""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from perfsuite.cli.bundle_farms import FARMS, write_farm
from perfsuite.measure.native import find_worker
from perfsuite.records.job import RESULTS, read_job

from ..planned_job import ingested, plan_job

#: A phone that is a folder of this machine: what adb does with it.
_ADB = """#!/bin/sh
[ "$1" = -s ] && shift 2
verb=$1; shift
there() { printf %s "$1" | sed "s#/data/local/tmp#$PHONE#g"; }
case $verb in
  shell) env -i PATH=/usr/bin:/bin PERFSUITE_LOCK_DIR="$PHONE" sh -c "$(there "$*")";;
  push) cp -R "$1" "$(there "$2")";;
  pull) cp -R "$(there "$1")" "$2";;
esac
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for a device."""
    folder = tmp_path_factory.mktemp("farms") / "job"
    folder.mkdir()
    plan_job(folder, find_worker(tmp_path_factory.mktemp("cache")), n_runs=1)
    return folder


@pytest.fixture
def phone(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a host beside a phone, with nothing else in it."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (tmp_path / "phone").mkdir()
    (programs / "adb").write_text(_ADB)
    (programs / "adb").chmod(0o755)
    return {"PATH": f"{programs}:/usr/bin:/bin", "PHONE": str(tmp_path / "phone")}


def shell(command: str, environment: dict[str, str], folder: Path) -> str:
    """Run a command as a job does."""
    done = subprocess.run(
        ["sh", "-c", command], env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def came_back(job: Path, results: Path) -> bool:
    """Whether what was handed back is of this machine."""
    return ingested(job, results).facts().hostname == platform.node()


def test_qualcomms_farm_runs_a_zip_by_pytest(job: Path, phone: dict[str, str], tmp_path: Path) -> None:
    """The zip has a test that leaves the answers where the farm takes logs from, and JUnit says that it passed."""
    (archive,) = write_farm("qdc", job, read_job(job))
    host = tmp_path / "host"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(host)
    assert (host / "requirements.txt").read_text() == "pytest\n"
    python = shlex.quote(sys.executable)
    command = f"{python} -m pytest -p no:perfsuite -p no:cacheprovider -c /dev/null --junitxml=junit.xml tests"
    shell(command, phone, host)
    assert 'failures="0"' in (host / "junit.xml").read_text()
    assert came_back(job, tmp_path / "phone" / "QDC_logs" / RESULTS)


def test_amazons_farm_runs_a_test_spec(job: Path, phone: dict[str, str], tmp_path: Path) -> None:
    """The phases of the spec, one command after the other, leave the answers among the artifacts."""
    spec, archive = write_farm("aws", job, read_job(job))
    package, logs = tmp_path / "package", tmp_path / "logs"
    logs.mkdir()
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(package)
    told = yaml.safe_load(spec.read_text())
    assert told["version"] == 0.1
    assert set(told) == {"version", "android_test_host", "phases", "artifacts"}
    named = {"DEVICEFARM_DEVICE_UDID": "0A1B", "DEVICEFARM_TEST_PACKAGE_PATH": str(package)}
    for phase in ("install", "pre_test", "test", "post_test"):
        for command in told["phases"].get(phase, {}).get("commands", ()):
            shell(command, {**phone, **named, "DEVICEFARM_LOG_DIR": str(logs)}, tmp_path)
    assert told["artifacts"] == ["$DEVICEFARM_LOG_DIR"]
    assert came_back(job, logs / RESULTS)


def test_an_executable_is_pushed_run_and_pulled(job: Path, phone: dict[str, str], tmp_path: Path) -> None:
    (path,) = write_farm("device-run", job, read_job(job))
    told = json.loads(path.read_text())
    for each in told["push"]:
        shell(f"adb push {shlex.quote(str(job.parent / each['from']))} {each['to']}", phone, tmp_path)
    shell(f"adb shell {shlex.quote(told['command'])}", phone, tmp_path)
    shell(f"adb pull {told['pull'][0]} back", phone, tmp_path)
    assert came_back(job, tmp_path / "back")


def test_lavas_test_cases_carry_measurements(job: Path, tmp_path: Path) -> None:
    """The steps run on the board itself, each request is a case with its seconds, and the answers are handed back."""
    spec, archive = write_farm("lava", job, read_job(job))
    told = yaml.safe_load(spec.read_text())
    (test,) = (action["test"] for action in told["actions"])
    programs = tmp_path / "programs"
    programs.mkdir()
    cases, back = tmp_path / "cases", tmp_path / "back.tar.gz"
    scripts = {
        "lava-test-case": f'echo "$*" >>{cases}',
        "wget": f"cat {shlex.quote(str(archive))}",
        "curl": f"cat >{back}",
    }
    for name, line in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    steps = "\n".join(test["definitions"][0]["repository"]["run"]["steps"])
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "PERFSUITE_LOCK_DIR": str(tmp_path)}
    environment |= dict.fromkeys(test["parameters"], "http://x")
    shell(steps, environment, tmp_path)
    seen = cases.read_text().splitlines()
    assert "run-folder --result pass" in seen
    measured = [line.split() for line in seen if "--measurement" in line]
    assert {words[0] for words in measured} <= {f"request-{each.name}" for each in read_job(job).requests}
    assert measured
    assert all(float(words[4]) >= 0 and words[5:] == ["--units", "seconds"] for words in measured)
    (tmp_path / "back").mkdir()
    subprocess.run(["tar", "-xf", back, "-C", tmp_path / "back"], check=True)
    assert came_back(job, tmp_path / "back" / RESULTS)


def test_each_farm_is_tried() -> None:
    """A farm whose file nobody runs here is not offered."""
    assert set(FARMS) == {"aws", "device-run", "lava", "qdc"}
