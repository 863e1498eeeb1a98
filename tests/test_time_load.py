"""The suite under load, in small, with the tool that measures it at full size."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import duckdb

from perfsuite.cli.history_changes import _searched, _Seen, _with_points, advice_by_case
from perfsuite.report.history import open_history, trends_of
from perfsuite.report.history.columns import MARK
from tests.loaded_tool import loaded_tool

#: Allocators give memory back late: a leak of a record or a buffer at each start would be more.
_MOST_GROWTH_KB = 1024


def test_two_hundred_starts_leave_nothing_behind() -> None:
    """Files, threads, children and folders are as many as before, and memory as much as after the first hundred."""
    counted = loaded_tool("time_load").count_starts(200, 2)
    before, middle, end = counted["looks"]
    held = ("n_files", "n_threads", "n_children")
    assert (counted["answers"], counted["fails"]) == (180, 20)
    assert [end[name] for name in held] == [before[name] for name in held]
    assert (middle["n_left"], end["n_left"]) == (1, 1)  # the stand-in's answer
    assert end["rss_kb"] - middle["rss_kb"] < _MOST_GROWTH_KB


def test_a_search_in_columns_finds_what_one_in_whole_points_does(tmp_path: Path) -> None:
    """Steps, another fingerprint and rows that a merge has left twice: the advice is equal, its points included."""
    loaded_tool("time_load").make_history(tmp_path, 60, 120)
    (first,) = (tmp_path / "compacted").glob("*.parquet")
    shutil.copy(first, first.with_name("twice.parquet"))
    another = """started_at + to_days(100) AS started_at, run_id || 'b' AS run_id,
        'another' AS fingerprint_digest, '{"soc": "another"}' AS fingerprint"""
    duckdb.execute(
        f"COPY (SELECT * REPLACE ({another}) FROM read_parquet('{first}')) TO '{first.with_name('later.parquet')}' "
        f"(FORMAT parquet, KV_METADATA {{'{MARK}': 'yes'}})"
    )
    options = argparse.Namespace(device=None, board=None, last=100)
    with open_history(tmp_path) as history:
        slow = advice_by_case(trends_of(history, last=100))
        fast = _with_points(history, list(_searched(history, options, _Seen())))
    assert fast == slow
    assert any(advice.changes for _, _, advice in fast)
    assert any(advice.machine_changes for _, _, advice in fast)
