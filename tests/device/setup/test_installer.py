"""The program that installs: what it leaves when it succeeds, when it fails, and when it is stopped."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.device.lock import hold_lock, lock_holder
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.setup.installer import install
from perfsuite.device.setup.set_up import LAUNCHER
from perfsuite.device.setup.steps import Steps
from perfsuite.device.setup.suite_wheel import pack_suite
from perfsuite.errors import DeviceError

from .small_wheels import ACCOUNT, request


def installed(folder: Path, **changed: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    return install(request(folder, **changed), Steps(folder / "setup.log", lambda **_: None), folder)


@pytest.fixture(scope="module", autouse=True)
def quick_environments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have environments copied from one that is made once; an installer in a process of its own makes real ones."""
    folder = tmp_path_factory.mktemp("environments")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "made")], check=True, timeout=120)
    copying = f'[ "$1 $2" != "-m venv" ] || exec cp -a {shlex.quote(str(folder / "made"))} "$3"'
    (folder / "python").write_text(f'#!/bin/sh\n{copying}\nexec {shlex.quote(sys.executable)} "$@"\n')
    (folder / "python").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perfsuite.device.setup.installer.sys", SimpleNamespace(executable=str(folder / "python")))
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one installation, which the tests leave as it is."""
    folder = tmp_path_factory.mktemp("home")
    assert installed(folder)["is_new"]
    return folder


@pytest.mark.long
def test_an_installation_answers_through_the_link(home: Path) -> None:
    python = home / "venv" / "bin" / "python"
    told = subprocess.run([python, "-m", "smallsuite"], capture_output=True, check=True, text=True)
    assert json.loads(told.stdout) == ACCOUNT


@pytest.mark.long
def test_the_same_suite_is_not_installed_again(home: Path) -> None:
    before = (home / "venv").resolve()
    told = installed(home)
    assert not told["is_new"]
    assert told["installed"] == ACCOUNT
    assert (home / "venv").resolve() == before


@pytest.mark.long
def test_a_suite_that_does_not_run_leaves_the_old_one(home: Path) -> None:
    """The link moves only after the new one has answered; its own last words are reported."""
    before = (home / "venv").resolve()
    with pytest.raises(DeviceError, match="asking the installed suite what it is: ImportError: no luck"):
        installed(home, digest="d2", code="raise ImportError('no luck')")
    assert (home / "venv").resolve() == before
    assert installed(home)["installed"] == ACCOUNT
    assert [path.name for path in (home / "venvs").iterdir()] == [before.name]


@pytest.mark.long
def test_what_earlier_setups_sent_and_made_is_removed(home: Path) -> None:
    """Of suites, and of wheels from a desk and of its own, those in use stay; a link is removed, not followed."""
    kept = home / "elsewhere"
    for path in (home / "incoming" / "d0", home / "wheels" / "smallengine==0.9", home / "wheels" / ".smallengine==0.8"):
        path.mkdir(parents=True)
        (path / "old-0.9-py3-none-any.whl").write_bytes(b"old")
    kept.mkdir()
    (kept / "own.txt").write_text("mine")
    (home / "incoming" / "wheels" / "linked").symlink_to(kept)
    (home / "incoming" / "wheels" / "old-0.9-py3-none-any.whl").write_bytes(b"old")
    installed(home)
    assert {path.name for path in (home / "incoming").iterdir()} == {"d1", "wheels"}
    assert [path.name for path in (home / "incoming" / "wheels").iterdir()] == ["smallengine-1.0-py3-none-any.whl"]
    assert [path.name for path in (home / "wheels").iterdir()] == ["smallengine==1.0"]
    assert (kept / "own.txt").read_text() == "mine"


def test_somebodys_own_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    with pytest.raises(DeviceError, match="was not made by setup; move it away"):
        installed(tmp_path)


def launched(folder: Path, told: dict[str, Any]) -> subprocess.Popen[str]:
    """Start the installer as a desk does: out of the wheel, by a Python without any package."""
    packed = pack_suite()
    wheel = folder / packed.file_name
    wheel.write_bytes(packed.content)
    return subprocess.Popen(
        [sys.executable, "-S", "-c", LAUNCHER, str(wheel), json.dumps(told)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


def told_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    out = process.stdout.read()
    process.wait(60)
    return out


@pytest.mark.long
def test_it_runs_out_of_the_wheel_with_the_standard_library_alone(home: Path, tmp_path: Path) -> None:
    """A device has no package of ours when the installer begins; its last line has the answer."""
    with launched(tmp_path, request(home)) as process:
        out = told_by(process)
    assert process.returncode == 0, out
    assert json.loads(out.splitlines()[-1])["done"]["installed"] == ACCOUNT


@pytest.mark.long
def test_it_ends_with_its_input_and_gives_the_lock_back(home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"import time\nfor _ in range(1200): open({str(mark)!r}, 'a').write('.'); time.sleep(0.05)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with launched(tmp_path, request(home, digest="d4", code=code)) as process:
        assert process.stdin is not None
        deadline = time.monotonic() + 60
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert mark.exists()
        process.stdin.close()
        assert process.wait(30) == 1
    size = mark.stat().st_size
    time.sleep(0.3)
    assert mark.stat().st_size == size
    assert lock_holder(home) is None
    installed(home)


@pytest.mark.long
def test_a_device_that_is_measured_is_left_alone(home: Path, tmp_path: Path) -> None:
    owner = LockOwner.here(user="bob", host="lab", run_id="r1", purpose="pytest --device=bench")
    with hold_lock(owner, name="bench", folder=home), launched(tmp_path, request(home)) as process:
        out = told_by(process)
    assert process.returncode == 1
    failed = json.loads(out.splitlines()[-1])["failed"]
    assert failed.startswith("bench: held by bob from lab (pytest --device=bench")
