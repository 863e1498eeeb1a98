"""The origin of a run: its id, and arguments that make the same measurement again."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.engine import find_engine
from perfsuite.measure.plan import LlamaPlan
from perfsuite.plugin import origin
from perfsuite.plugin.origin import chosen_cases, commit_of, named_commit, rerun_arguments
from tests.fake_device import FakeDevice, HostRuns


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *who, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    _git(tmp_path, "init", "--quiet", "--initial-branch=trunk")
    (tmp_path / "tracked").write_text("1")
    _git(tmp_path, "add", "tracked")
    _git(tmp_path, "commit", "--quiet", "-m", "first")
    return tmp_path


def test_a_clean_tree_has_its_commit_and_branch(tree: Path) -> None:
    """From any folder within it; files that git does not track make it no other."""
    (tree / "within").mkdir()
    (tree / "within" / "untracked").touch()
    for folder in (tree, tree / "within"):
        commit = commit_of(folder)
        assert commit is not None
        assert (commit.sha, commit.is_dirty, commit.branch) == (_git(tree, "rev-parse", "HEAD"), False, "trunk")


def test_a_changed_file_makes_a_tree_dirty(tree: Path) -> None:
    """Staged or not, and detached, as continuous integration checks out: then it is on no branch."""
    (tree / "tracked").write_text("2")
    found = [commit_of(tree)]
    _git(tree, "add", "tracked")
    found.append(commit_of(tree))
    _git(tree, "checkout", "--quiet", "--detach")
    found.append(commit_of(tree))
    assert [(each.is_dirty, each.branch) for each in found if each] == [(True, "trunk")] * 2 + [(True, None)]


def test_where_there_is_no_commit_none_is_told(tmp_path: Path) -> None:
    """A folder that is no working tree, one without a commit, and one that is not there."""
    _git(tmp_path, "init", "--quiet", "empty")
    (tmp_path / "bare").mkdir()
    assert commit_of(tmp_path / "empty") is None
    assert commit_of(tmp_path / "gone") is None


@pytest.mark.parametrize("hangs", [False, True])
def test_without_git_there_is_no_commit(tree: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool) -> None:
    """Neither a program that is missing nor one that hangs is an error of the run."""
    if hangs:
        (tree / "git").write_text("#!/bin/sh\nexec sleep 60\n")
        (tree / "git").chmod(0o755)
        monkeypatch.setattr(origin, "_LIMIT_S", 0.1)
    monkeypatch.setenv("PATH", f"{tree}:/usr/bin:/bin" if hangs else str(tree))
    assert commit_of(tree) is None


def test_a_tree_whose_state_is_not_known_counts_as_dirty(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = origin._git
    monkeypatch.setattr(origin, "_git", lambda folder, *words: None if words[0] == "status" else asked(folder, *words))
    assert commit_of(tree).is_dirty  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["0c1e570", "A" * 40, " 0c1e570\n"])
def test_a_commit_can_be_named(text: str) -> None:
    """In 7 to 40 hexadecimal digits of either case; nothing is known of its tree."""
    commit = named_commit(text)
    assert (commit.sha, commit.is_dirty, commit.branch) == (text.strip().lower(), False, None)


@pytest.mark.parametrize("text", ["", "0c1e57", "a" * 41, "0c1e570 ; ls", "-c1e5700"])
def test_what_is_no_commit_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match=r"--perf-commit=.*: expected 7 to 40 hexadecimal digits"):
        named_commit(text)


MODEL = "--model=smollm2-135m-l2-q8_0"


def _run(pytester: pytest.Pytester, *arguments: str) -> dict[str, Any]:
    result = pytester.runpytest_inprocess("--perf-dir=run", "-p", "no:cacheprovider", *arguments)
    assert result.ret in (0, 1)
    run: dict[str, Any] = json.loads((pytester.path / "run" / "run.json").read_text())
    return run


def _plans(device: FakeDevice) -> list[LlamaPlan]:
    plans = [replace(plan, layout_seed=0) for plan in device.plans if isinstance(plan, LlamaPlan)]
    device.plans.clear()
    return plans


def test_the_id_names_the_folder(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    pytester.runpytest_inprocess("--device=host", MODEL, "-p", "no:cacheprovider", "-k", "test_phase")
    (path,) = (pytester.path / ".perfsuite" / "runs").glob("*/run.json")
    assert json.loads(path.read_text())["run_id"] == path.parent.name


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--device", "host", MODEL, "--baseline=record"), ["--device=host", MODEL]),
        (("--device=host", MODEL, "--baseline=off", "--perf-replicates=5"), ["--baseline=off", "--perf-replicates=5"]),
        (("--device=host", MODEL, "--perf-report=off", "--perf-history=off"), ["--device=host", MODEL]),
        (("--device=host", MODEL, "--benchmark-disable", "--perf-strict"), ["--perf-strict"]),
        (("--device=host", MODEL, "-o", "perf_margin=0.2", "-o", "xfail_strict=1"), ["--override-ini=perf_margin=0.2"]),
        (("--device=host", MODEL, "--perf-inject=ffn_up=2", "--perf-commit=0C1E570"), ["--perf-inject=ffn_up=2"]),
    ],
)
def test_arguments_say_what_is_measured(
    pytester: pytest.Pytester, fake_device: FakeDevice, arguments: tuple[str, ...], told: list[str]
) -> None:
    """Each as one word, in full; not which cases are chosen, where it is written, or how it looks."""
    kept = _run(pytester, *arguments, "-k", "test_phase")["arguments"]
    assert set(told) <= set(kept)
    names = {each.partition("=")[0] for each in kept}
    assert names <= {
        each.partition("=")[0] for each in (*told, "--device=", MODEL, "-pno:cacheprovider", "--perf-commit")
    }


@pytest.mark.parametrize("farm", ["--farm", "--farm=farm.example.org:20408"])
def test_a_board_of_a_farm_is_borrowed_again(pytester: pytest.Pytester, farm: str) -> None:
    """The coordinator is asked again, for the board may be another's by now; how it was waited for is not kept."""
    given = (farm, "--farm-wait=2m", "--farm-break=attic", "--farm-avoid=cellar")
    config = pytester.parseconfig("--device=rubikpi", MODEL, *given)
    kept = list(rerun_arguments(config))
    assert [each for each in kept if each.startswith("--farm")] == [farm if "=" in farm else "--farm="]
    assert pytester.parseconfig(*kept).option.perf_farm == config.option.perf_farm


def test_what_a_configuration_adds_counts(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Options of addopts are reported like those of the command line, which wins."""
    pytester.makeini(f"[pytest]\naddopts = --device=host --threads=1 --perf-replicates=3 {MODEL}")
    kept = _run(pytester, "--perf-replicates=4", "-k", "test_phase")["arguments"]
    assert {"--device=host", "--threads=1", "--perf-replicates=4", MODEL} <= set(kept)
    assert "--perf-replicates=3" not in kept


def test_the_arguments_measure_the_same_again(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """With the id of a case in brackets for -k they run that case alone, by the very same plan."""
    given = ("--device=host", MODEL, "--threads=1", "--perf-replicates=3", "--scenario=p8-g4", "--perf-margin=0.07")
    given = (*given, "--baseline=off")
    run = _run(pytester, *given, "-k", "decode", "-q")
    plans = _plans(fake_device)
    case_id = "operator/smollm2-135m-l2-q8_0/p8-g4/decode/ffn_up"
    assert case_id in {case["id"] for case in run["cases"]}
    again = _run(pytester, *run["arguments"], "-k", f"[{case_id}]")
    assert [case["id"] for case in again["cases"]] == [case_id]
    assert _plans(fake_device) == plans
    assert again["arguments"] == run["arguments"]


def test_paths_are_kept_without_the_choice_in_them(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """A file of your own is run again as a whole, from which the case's id chooses."""
    pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.parametrize("name", ["own/a", "own/b"])
        def test_own(perf, name):
            perf.check(name, [10, 11, 12, 10, 11])
        """
    )
    run = _run(pytester, "--device=host", MODEL, "test_own.py::test_own[own/a]")
    assert run["arguments"][-1] == "test_own.py"
    again = _run(pytester, *run["arguments"], "-k", "[own/b]")
    assert [case["id"] for case in again["cases"]] == ["own/b"]


def test_another_engine_is_named(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert _run(pytester, "--device=host", MODEL, "-k", "test_phase")["environment"] == {}
    packaged = find_engine()
    library_dir = tmp_path / "llama" / "lib"
    library_dir.parent.mkdir()
    shutil.copytree(packaged.library_dir, library_dir)
    shutil.copytree(packaged.include_dirs[0], tmp_path / "llama" / "include")
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(library_dir))
    run = _run(pytester, "--device=host", MODEL, "-k", "test_phase")
    assert run["environment"] == {"LLAMA_CPP_LIB_PATH": str(library_dir)}


def test_a_commit_that_is_named_stands_for_the_trees(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """The sources of a build may be somewhere else; without either there is no commit."""
    named = _run(pytester, "--device=host", MODEL, "-k", "test_phase", "--perf-commit=0C1E570")
    assert named["commit"] == {"sha": "0c1e570", "is_dirty": False, "branch": None}
    assert _run(pytester, "--device=host", MODEL, "-k", "test_phase")["commit"] is None


@pytest.mark.parametrize(
    ("arguments", "selection"),
    [
        ((), []),
        (("-k", "test_phase and not copy", "-m", "not slow"), ["-k", "test_phase and not copy", "-m", "not slow"]),
        (("--deselect=a.py::one", "a.py"), ["--deselect=a.py::one"]),
        (("a.py::one", "a.py::two[x]", "b.py", "b.py::three"), ["a.py::one", "a.py::two[x]"]),
    ],
)
def test_the_choice_of_cases_is_kept(
    pytester: pytest.Pytester, arguments: tuple[str, ...], selection: list[str]
) -> None:
    """Expressions, deselected tests and node ids, as they were given; not a test of a file that is named as a whole."""
    for name in ("a.py", "b.py"):
        (pytester.path / name).touch()
    assert list(chosen_cases(pytester.parseconfig("--device=host", MODEL, *arguments))) == selection


#: Variables that hold secrets, or addresses with one, on the machines of those who measure.
SECRETS = {
    "AWS_ACCESS_KEY_ID": "hunter-1",
    "AWS_SECRET_ACCESS_KEY": "hunter-2",
    "AWS_ENDPOINT_URL": "http://me:hunter-3@127.0.0.1:9",
    "HF_TOKEN": "hunter-4",
    "GITHUB_TOKEN": "hunter-5",
    "SSHPASS": "hunter-6",
    "PIP_INDEX_URL": "https://me:hunter-7@index/simple",
}


@pytest.mark.usefixtures("real_outputs")
def test_no_secret_of_the_environment_is_kept(
    runs: HostRuns, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the terminal nor a file of a run, its report, its history and its exports holds one of them."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    result = runs("--baseline=record", "--perf-history=history", "--junitxml=junit.xml", "-k", "phase")
    written = [path for path in pytester.path.rglob("*") if path.is_file() and path.name != "conftest.py"]
    assert {path.name for path in written} >= {"run.json", "junit.xml"}
    assert any(path.suffix == ".parquet" for path in written)
    assert [path for path in written if b"hunter-" in path.read_bytes()] == []
    assert "hunter-" not in str(result.stdout) + str(result.stderr)
