"""One command from two names to a verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.measure.bundle.named_builds import Builder
from perfsuite.measure.engine import Engine, find_engine
from tests.device_lock import held_by, lock_holder

from ..command_streams import Refused


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this test a lock of its own."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setenv("PERFSUITE_LOCK_DIR", str(folder))
    return folder


def test_both_sides_are_handed_to_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old side by its option, the new one by the variable; options behind '--' last; the exit code is pytest's."""
    seen = pytests(monkeypatch, 10)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    folder = str(find_engine().library_dir)
    assert main(["compare", folder, folder, "--quiet", "--", "--perf-budget=3m", "-k", "phase"]) == 10
    ((command, environment),) = seen
    at = command.index("--perf-device=host")
    assert command[at + 1 : -1] == [f"--perf-against={folder}", "--perf-budget=3m", "-k", "phase"]
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    assert environment.pop("PERFSUITE_RUN_ID").startswith("compare-")
    assert environment == {**kept, "LLAMA_CPP_LIB_PATH": folder}


def pytests(monkeypatch: pytest.MonkeyPatch, status: int, **fields: Any) -> list[tuple[list[str], dict[str, str]]]:
    """Let pytest end at once, with a run.json whose fields are as asked for; return how it is called."""
    seen = []

    def run(command: Sequence[str], environment: dict[str, str], _: object) -> int:
        seen.append((list(command), environment))
        folder = Path(command[-1].partition("=")[2])
        folder.mkdir(parents=True, exist_ok=True)
        against = [each for each in command if each.startswith("--perf-against=")]
        plain = {"schema": 1, "cases": [], "interrupted": False, "arguments": against, **fields}
        (folder / "run.new").write_text(json.dumps(plain))
        (folder / "run.new").replace(folder / "run.json")  # a file of its own: two runs of one second have one folder
        return status

    monkeypatch.setattr("perfsuite.cli.pytest_run._status", run)
    monkeypatch.setattr("perfsuite.cli.compare.refuse_mistakes", lambda *_, **__: None)
    return seen


@pytest.mark.parametrize(
    "fields",
    [{"interrupted": True}, {"arguments": ["--against=/other"]}, {"environment": {"LLAMA_CPP_LIB_PATH": "/other"}}],
)
@pytest.mark.parametrize("status", [0, 10])
def test_a_run_of_something_else_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fields: dict[str, Any], status: int
) -> None:
    """Nor one that was interrupted, whatever pytest's exit code."""
    folder = str(find_engine().library_dir)
    pytests(monkeypatch, status, **fields)
    words = ["compare", folder, folder, "--json", "--quiet", "--", f"--perf-dir={tmp_path}"]
    assert main(words) == 2


def test_the_folder_in_which_it_runs_is_asked_for_nothing(tmp_path: Path) -> None:
    """Configuration, conftest.py, profiles and modules there are passed over; without a run nothing was compared."""
    harm = f"open({str(tmp_path / 'harmed')!r}, 'w')"
    work = tmp_path / "work"
    (work / "devices").mkdir(parents=True)
    for name in ("conftest", "json", "msgspec", "perfsuite", "pytest"):
        (work / f"{name}.py").write_text(harm)
    (work / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (work / "devices/host.toml").write_text("no profile")
    folder = str(find_engine().library_dir)
    command = [Path(sys.executable).with_name("perfsuite"), "compare", folder, folder, "--", "--collect-only", "-q"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    assert "phase/smollm2-135m-q8_0/siso/decode" in done.stdout
    assert (done.returncode, "nothing was compared" in done.stderr) == (2, True)
    assert not (tmp_path / "harmed").exists()


def test_changes_beside_the_commits_are_told_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=ada", "-c", "user.email=ada@desk"]
    for words in (["init", "-q"], ["commit", "-qm", "1", "--allow-empty"]):
        subprocess.run([*git, *words], check=True)
    words = ["compare", "HEAD", "HEAD", f"--source={tmp_path}", "--build=false", "--quiet"]
    assert "HEAD has no changes beside its commit" in refused([*words, "--with-changes"])
    (tmp_path / "new.cpp").touch()
    assert main(words) == 2
    told = capsys.readouterr().err.splitlines()
    assert f"HEAD: without 1 changed file of {tmp_path} that no commit holds; --with-changes takes" in told[0]
    assert "building" in told[-1]


def test_llama_benchs_options_become_pytests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the meaning that it has there, by its short name or its long one."""
    seen = pytests(monkeypatch, 0)
    folder = str(find_engine().library_dir)
    words = ["-m", "a.gguf", "-p", "512", "-n", "128", "--n-depth=64", "-fa", "0", "-ctk", "q8_0", "-ub", "256"]
    assert main(["compare", folder, folder, "--quiet", *words]) == 0
    command = seen[0][0]
    assert command[command.index(f"--perf-against={folder}") + 1 : -1] == [
        *("--perf-model=a.gguf", "--perf-n-prompt=512", "--perf-n-gen=128", "--perf-n-depth=64"),
        *("--perf-ubatch-size=256", "--perf-flash-attn=off", "--perf-cache-type-k=q8_0"),
    ]


def test_a_name_that_is_no_build_is_told(refused: Refused) -> None:
    told = "master: is not a folder, no release and no kept engine; expected a folder"
    assert told in refused(["compare", "master", "my-branch"])


@pytest.fixture
def unbuilt(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two names, of which nothing may be built."""
    monkeypatch.setattr(Builder, "engine", lambda *_, **__: pytest.fail("something is built"))
    return ["compare", *[str(find_engine().library_dir)] * 2, "--quiet"]


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--", "--perf-budget=never"], "--perf-budget=never: expected a time such as 120s, 5m or 1h"),
        (["-p", "-1"], "--n-prompt=-1: expected 0 to "),
        (["-m", "nothing"], "nothing"),
        (["--", "--device=counted"], "counted counts one model on one thread, and measures no time"),
        (["--", "--device=rubikpi"], "--device=rubikpi: compare builds and measures on this machine; leave it out"),
        (["--", "--perf-address=pi@desk"], "--perf-address=pi@desk: compare builds and measures on this machine"),
        (["--", "--no-such-option"], "unrecognized arguments: --no-such-option"),
    ],
)
def test_options_of_pytest_are_refused_before_anything_is_built(
    unbuilt: list[str], words: list[str], told: str, refused: Refused
) -> None:
    line = refused([*unbuilt, *words])
    assert told in line
    assert "ssh:none" not in line


@pytest.mark.long
def test_a_device_that_somebody_has_is_waited_for_before_anything_is_built(
    unbuilt: list[str], locks: Path, refused: Refused
) -> None:
    with held_by(locks, "anna"):
        assert "host: held by anna from desk" in refused(unbuilt)
        assert "; waited 1 s for it" in refused([*unbuilt, "--", "--perf-wait=1s"])


def test_the_device_is_had_while_builds_are_compiled(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = pytests(monkeypatch, 0)
    owners = []

    def engine(*_: object, **__: object) -> Engine:
        owner = lock_holder(locks)
        assert owner is not None
        owners.append(owner.run_id)
        return find_engine()

    monkeypatch.setattr(Builder, "engine", engine)
    folder = str(find_engine().library_dir)
    assert main(["compare", folder, folder, "--quiet"]) == 0
    assert owners == [seen[0][1]["PERFSUITE_RUN_ID"]] * 2
    assert lock_holder(locks) is None
