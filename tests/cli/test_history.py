"""``perfsuite history``."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.records.run_origin import NO_ORIGIN, BoardName
from perfsuite.report.history import append_run
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run
from tests.command_streams import Refused, Streams
from tests.s3_server import make_bucket, running_s3

DECODE = "phase/smollm2-135m-q8_0/siso/decode"
BEGAN_AT = datetime(2026, 3, 1, 2, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty nights; from the twentieth on some cases are 6 % slower."""
    folder = tmp_path_factory.mktemp("nights")
    for night in range(30):
        ratio = 1.06 if night >= 20 else 1.0
        started_at = (BEGAN_AT + timedelta(days=night)).isoformat()
        run = synthetic_run(n_cases=12, seed=night, started_at=started_at, change_ratio=ratio, against=None)
        append_run(run, folder)
    return folder


@pytest.fixture
def history_dir(nights: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return Path(shutil.copytree(nights, tmp_path / "history"))


def test_a_history_on_s3_is_asked_like_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams, refused: Refused
) -> None:
    """Runs are added, listed and merged; what cannot be reached is one line."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for seed in (1, 2):
        write_run(synthetic_run(n_cases=8, seed=seed), tmp_path / "runs" / str(seed))
    with running_s3(monkeypatch) as endpoint:
        make_bucket(endpoint, "farm")
        where = ["--history", "s3://farm/nights"]
        assert main(["history", "runs", *where]) == 0
        assert "s3://farm/nights: holds no run yet" in capsys.readouterr().out
        assert main(["history", "add", str(tmp_path / "runs"), *where]) == 0
        assert capsys.readouterr().out.count("8 cases added") == 2
        for told in (
            r"s3://farm/nights/compacted/\w+\.parquet: 2 runs of 2 files",
            "s3://farm/nights: nothing to merge",
        ):
            assert main(["history", "compact", *where]) == 0
            assert re.match(told, capsys.readouterr().out)
        assert main(["history", "sql", "SELECT count(*) AS n FROM history", "--json", *where]) == 0
        assert json.loads(capsys.readouterr().out) == [{"n": 16}]
        assert "s3://other/x: cannot be listed (NoSuchBucket)" in refused(["history", "runs", "--history=s3://other/x"])
    assert "expected a folder of this machine" in refused(["history", "runs", "--history=https://farm/x"])


def told(arguments: list[str], history_dir: Path, capsys: Streams) -> str:
    capsys.readouterr()
    assert main(["history", *arguments, "--history", str(history_dir)]) == 0
    return capsys.readouterr().out


def test_runs_and_cases_are_listed(history_dir: Path, capsys: Streams) -> None:
    """Tables for people, JSON and CSV for programs."""
    assert "2026-03-30 02:00" in told(["runs", "--last", "2"], history_dir, capsys)
    runs = json.loads(told(["runs", "--json"], history_dir, capsys))
    assert [runs[0]["started_at"], len(runs)] == ["2026-03-30T02:00:00+00:00", 30]
    rows = list(csv.DictReader(io.StringIO(told(["cases", "siso/decode", "--csv"], history_dir, capsys))))
    assert {row["case_id"] for row in rows} >= {DECODE}
    assert all("decode" in row["case_id"] and row["n_runs"] == "30" for row in rows)


def test_a_trend_is_shown_and_drawn(history_dir: Path, capsys: Streams) -> None:
    """Bars, a row a run, and a picture; as JSON and CSV with the samples."""
    picture = history_dir.parent / "trend.svg"
    text = told(["trend", DECODE, "--plot", str(picture)], history_dir, capsys)
    assert f"{DECODE} on host, 30 runs" in text
    assert "█" in text
    assert "<svg" in picture.read_text("utf-8")
    points = json.loads(told(["trend", DECODE, "--last", "3", "--json"], history_dir, capsys))
    assert [len(points), len(points[0]["samples_ns"])] == [3, 10]
    rows = list(csv.DictReader(io.StringIO(told(["trend", DECODE, "--csv"], history_dir, capsys))))
    assert json.loads(rows[0]["samples_ns"]) == points[0]["samples_ns"] or len(rows) == 30


def test_changes_are_told_as_advice(history_dir: Path, capsys: Streams) -> None:
    """Where a case changed, how sure that is, and that nothing rests on it; the exit code is 0."""
    text = told(["changes", DECODE], history_dir, capsys)
    assert "between the runs of 2026-03-20 02:00" in text
    assert "high confidence, 20 nights before, 10 since" in text
    assert "advice: no outcome and no exit code rests on it" in text
    (one,) = json.loads(told(["changes", DECODE, "--json"], history_dir, capsys))
    assert 1.05 < one["changes"][0]["change_ratio"] < 1.07
    assert DECODE in told(["changes"], history_dir, capsys)


def test_older_runs_are_added_once(tmp_path: Path, capsys: Streams) -> None:
    """A run's file, its folder, and a folder of runs; what is there already is left alone."""
    for number in range(2):
        run = replace(synthetic_run(n_cases=8, seed=number), origin=NO_ORIGIN)
        write_run(run, tmp_path / "runs" / str(number))
    history_dir = tmp_path / "history"
    assert told(["add", str(tmp_path / "runs" / "0" / "run.json")], history_dir, capsys).endswith("8 cases added\n")
    text = told(["add", str(tmp_path / "runs"), str(tmp_path / "runs" / "1")], history_dir, capsys)
    assert [line.partition(": ")[2] for line in text.splitlines()] == [
        *("is there already", "8 cases added", "is there already")
    ]
    assert len(json.loads(told(["runs", "--json"], history_dir, capsys))) == 2


def test_a_query_is_answered(history_dir: Path, capsys: Streams, refused: Refused) -> None:
    """As a table, JSON or CSV; two columns of one name are refused in JSON, and a cut answer is said beside it."""
    query = "SELECT device, count(*) AS n FROM history GROUP BY device"
    assert told(["sql", query, "--csv"], history_dir, capsys) == "device,n\nhost,360\n"
    assert json.loads(told(["sql", query, "--json"], history_dir, capsys)) == [{"device": "host", "n": 360}]
    assert "360" in told(["sql", query], history_dir, capsys)
    query = "SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE, 1.5::DOUBLE] AS b"
    assert json.loads(told(["sql", query, "--json"], history_dir, capsys)) == [{"a": None, "b": [None, 1.5]}]
    doubled = ["history", "sql", "SELECT 1 AS a, 2 AS a", "--history", str(history_dir)]
    assert "'a' is the name of more than one column" in refused([*doubled, "--json"])
    assert told(["sql", "SELECT 1 AS a, 2 AS a", "--csv"], history_dir, capsys) == "a,a\n1,2\n"
    arguments = ["history", "sql", "SELECT range FROM range(9)", "--rows", "2", "--csv", "--history", str(history_dir)]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out == "range\n0\n1\n"
    assert "more than 2 rows" in err


def test_interrupted_runs_are_not_added(tmp_path: Path, capsys: Streams, refused: Refused) -> None:
    """One that is named is refused; among others it is left out with a line."""
    for number in range(2):
        run = synthetic_run(n_cases=8, seed=number)
        write_run(replace(run, is_interrupted=number == 0), tmp_path / "runs" / str(number))
    assert "was interrupted" in refused(
        ["history", "add", str(tmp_path / "runs" / "0" / "run.json"), "--history", str(tmp_path / "history")]
    )
    text = told(["add", str(tmp_path / "runs")], tmp_path / "history", capsys)
    assert [line.partition(": ")[2] for line in text.splitlines()] == ["was interrupted; left out", "8 cases added"]


def test_the_history_above_the_current_folder_is_read(
    history_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """Where no folder is named; without any, the one that was looked at is named."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "below").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "below")
    assert main(["history", "runs"]) == 0
    assert f"{tmp_path}/project/below/.perfsuite/history: holds no run yet" in capsys.readouterr().out
    shutil.copytree(history_dir, tmp_path / "project" / ".perfsuite" / "history")
    assert main(["history", "runs", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 30


def test_an_empty_history_says_how_it_fills(tmp_path: Path, capsys: Streams) -> None:
    assert "a run with --device adds itself" in told(["changes"], tmp_path / "none", capsys)


def test_a_foreign_file_is_named_beside_the_answer(history_dir: Path, capsys: Streams) -> None:
    """What is left out is stated on standard error."""
    (history_dir / "runs" / "foreign.parquet").write_bytes(b"no")
    assert main(["history", "runs", "--history", str(history_dir)]) == 0
    assert "foreign.parquet: is not a whole Parquet file of a history; left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["trend", "nothing"], "CASE nothing: no case has this id, or ends so; 'perfsuite history cases' lists all"),
        (["trend", DECODE, "--device", "hots"], "holds no run of device hots; devices are host; did you mean host?"),
        (["sql", "SELECT '\udcff'"], "is not UTF-8"),
        (["sql", "SELECT device FROM histroy"], "did you mean history?"),
        (["sql", "DROP VIEW history"], "expected a single SELECT, found DROP"),
    ],
)
def test_mistakes_are_one_line(history_dir: Path, refused: Refused, arguments: list[str], reason: str) -> None:
    """What cannot be asked is reported with what is accepted."""
    assert reason in refused(["history", *arguments, "--history", str(history_dir)])


def test_hostile_names_are_shown_as_text(tmp_path: Path, capsys: Streams) -> None:
    """No name steers the terminal or is taken for markup, in any listing."""
    run = synthetic_run(n_cases=60, names=HOSTILE_NAMES)
    append_run(run, tmp_path)
    hostile = [each.case_id for each in run.judgements if any(c in each.case_id for c in "\x1b\u202e<[")][:6]
    assert hostile
    for action in (["runs"], ["cases"], ["changes"], *(["trend", case_id] for case_id in hostile)):
        text = told(action, tmp_path, capsys)
        assert "\x1b" not in text
        assert "\u202e" not in text
    listed = json.loads(told(["cases", "--json"], tmp_path, capsys))
    assert {each["case_id"] for each in listed} == {each.case_id for each in run.judgements}


def test_broken_runs_keep_no_others_out(tmp_path: Path, capsys: Streams) -> None:
    """Each is named, the others are added, and the exit code is 2."""
    (tmp_path / "runs" / "0").mkdir(parents=True)
    (tmp_path / "runs" / "0" / "run.json").write_text("{}")
    run = synthetic_run(n_cases=8)
    write_run(run, tmp_path / "runs" / "1")
    write_run(replace(run, started_at="yesterday"), tmp_path / "runs" / "2")
    write_run(replace(run, origin=NO_ORIGIN), tmp_path / "runs" / "3")
    arguments = ["history", "add", str(tmp_path / "runs"), str(tmp_path / "none"), "--history", str(tmp_path / "h")]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert [line.partition(": ")[2] for line in out.splitlines() if "added" in line] == ["8 cases added"] * 2
    assert "0/run.json" in err
    assert f"{tmp_path}/none" in err


def test_times_that_are_none_are_counted(tmp_path: Path, capsys: Streams) -> None:
    """Zeros are no nights of change points, and in no chart; the page counts those of the chosen cases."""
    run = synthetic_run(n_cases=8, against=None)
    append_run(replace(run, judgements=tuple(replace(each, measured_ns=0) for each in run.judgements)), tmp_path / "h")
    page = ["page", "-o", str(tmp_path / "a.html")]
    for words, n_times in ((["changes"], "8 times"), (page, "8 times"), ([*page, "phase/*/decode"], "1 time")):
        assert main(["history", *words, "--history", str(tmp_path / "h")]) == 0
        assert f"{n_times} of 0 ns or less; left out" in capsys.readouterr().err


def test_the_page_is_written_and_told(nights: Path, tmp_path: Path, capsys: Streams) -> None:
    """All cases over all runs, or those of a pattern, with the change points that 'perfsuite history changes' tells."""
    path = tmp_path / "new" / "history.html"
    assert told(["page", "-o", str(path)], nights, capsys).startswith(f"{path}: 12 cases, 30 runs, ")
    text = path.read_text("utf-8")
    assert "30 runs on 1 device, 2026-03-01 to 2026-03-30." in text
    assert "2026-03-20 to 2026-03-21" in text
    assert "high confidence" in text
    for pattern in ("DECODE", "phase/*/decode"):
        assert told(["page", pattern, "-o", str(path)], nights, capsys).startswith(f"{path}: 1 case, 30 runs, 1 change")


def test_a_page_of_nothing_is_not_written(nights: Path, tmp_path: Path, refused: Refused) -> None:
    given = ["history", "page", "-o", str(tmp_path / "a.html"), "--history"]
    assert "no case is like 'zzz'" in refused([*given, str(nights), "zzz"])
    assert "holds no run" in refused([*given, str(tmp_path / "none")])
    assert not (tmp_path / "a.html").exists()


@pytest.fixture
def pool_dir(tmp_path: Path) -> Path:
    """Forty nights on two boards of a kind in turn, of which one is 8 % slower."""
    for night in range(40):
        started_at = (BEGAN_AT + timedelta(days=night)).isoformat()
        ratio = 1.08 if night % 2 else 1.0
        run = synthetic_run(n_cases=8, seed=night, started_at=started_at, change_ratio=ratio, against=None)
        board = BoardName(identity=("fast", "slow")[night % 2] * 4, hostname="shelf", is_linked=True)
        append_run(replace(run, origin=replace(run.origin, board=board)), tmp_path / "pool")
    return tmp_path / "pool"


@pytest.mark.long
def test_a_slower_board_of_a_kind_is_no_change(pool_dir: Path, capsys: Streams) -> None:
    """Boards that take turns have no change point, and a trend by board that does not jump from night to night."""
    assert "no change point in 8 cases" in told(["changes"], pool_dir, capsys)
    text = told(["trend", DECODE], pool_dir, capsys)
    assert f"{DECODE} on host, board fastfastfastfast (shelf), 20 runs" in text
    assert f"{DECODE} on host, board slowslowslowslow (shelf), 20 runs" in text
    changes = [float(each) for each in re.findall(r"([+-][0-9.]+) %", text)]
    assert len(changes) == 38
    assert max(map(abs, changes)) < 5.0


def test_one_board_is_listed(pool_dir: Path, capsys: Streams) -> None:
    """By its identity or the beginning of it; one that is not there is reported with what was asked for."""
    runs = json.loads(told(["runs", "--board", "slow", "--json"], pool_dir, capsys))
    assert {run["board"] for run in runs} == {"slowslowslowslow"}
    points = json.loads(told(["trend", DECODE, "--board", "fastfast", "--last", "3", "--json"], pool_dir, capsys))
    assert {(point["board"], point["board_hostname"]) for point in points} == {("fastfastfastfast", "shelf")}
    assert json.loads(told(["changes", "--board", "slow", "--json"], pool_dir, capsys))[0]["n_runs"] == 20
    assert "holds no run of board third; boards are slow" in told(["runs", "--board", "third"], pool_dir, capsys)
