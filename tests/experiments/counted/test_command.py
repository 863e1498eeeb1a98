"""``perfsuite counts``: what it says, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.cli.__main__ import main
from perfsuite.records.counts import CountedWork, read_counts
from tests.counted_work import WORK, work

OPERATOR = "counted/tiny/p16-g4/prefill/attn_q"
COMMAND = "perfsuite.experiments.counted.command"


def counted(monkeypatch: pytest.MonkeyPatch, what: CountedWork) -> None:
    """Let a run count that."""
    monkeypatch.setattr(f"{COMMAND}.count_workload", lambda workload, llama, cache_dir, tell: what)


def run(folder: Path, *options: str) -> int:
    """Run the command with its baselines in a folder."""
    return main(["counts", "--quiet", f"--baseline-dir={folder}", *options])


def test_without_a_file_nothing_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with 10, and says how to keep what was counted."""
    counted(monkeypatch, WORK)
    assert run(tmp_path) == 10
    assert "keep these with --record" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("now", "status", "says"),
    [
        pytest.param(WORK, 0, "the same work as in", id="same"),
        pytest.param(work(instructions=1001), 1, "more work than in", id="more"),
        pytest.param(work(instructions=999), 0, "less work than in", id="less"),
    ],
)
def test_what_is_counted_is_judged_by_what_was_kept(
    now: CountedWork,
    status: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """More work ends with 1, the same and less with 0; the table names the operator."""
    counted(monkeypatch, WORK)
    assert run(tmp_path, "--record") == 0
    assert read_counts(tmp_path / "counted" / "tiny-p16-g4.json") == WORK
    capsys.readouterr()
    counted(monkeypatch, now)
    assert run(tmp_path) == status
    out = capsys.readouterr().out
    assert says in out
    assert ("prefill/attn_q" in out) == (now is not WORK)


def test_json_has_the_changes_and_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs get all of it."""
    counted(monkeypatch, WORK)
    run(tmp_path, "--record")
    capsys.readouterr()
    counted(monkeypatch, work(reads=1100))
    assert run(tmp_path, "--json") == 1
    plain = json.loads(capsys.readouterr().out)
    assert plain["outcome"] == "regressed"
    assert [(each["case_id"], each["ratio"]) for each in plain["changes"]] == [(f"{OPERATOR}/reads", 0.1)]
    assert len(plain["counted"]["rows"]) == 2


def test_no_tokens_are_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the option."""
    assert run(tmp_path, "--prompt=0") == 2
    assert "--prompt=0: expected 1 or more" in capsys.readouterr().err


def test_what_does_more_than_its_formula_says_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a baseline, which alone decides how the command ends."""
    counted(monkeypatch, read_counts(Path("baselines/counted/smollm2-135m-l4-q8_0-p16-g4.json")))
    assert run(tmp_path) == 10
    assert "2 show more work" in capsys.readouterr().out
    run(tmp_path, "--json")
    expected = json.loads(capsys.readouterr().out)["expected"]
    findings = [each["case_id"] for each in expected if each["is_finding"]]
    assert [name.split("/", 3)[3] for name in findings] == [
        "prefill/result_norm/instructions",
        "decode/result_norm/instructions",
    ]
