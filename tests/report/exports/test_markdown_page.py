"""Runs as Markdown within a limit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from perfsuite.report.exports.markdown_page import page
from perfsuite.testing.run_files import synthetic_run
from perfsuite.units import format_count

from .conftest import HARMLESS, WORDS, run_of
from .markdown_reader import rendered

PAGED_RUN = synthetic_run()
_LEFT_OUT = re.compile(r"Left out for lack of room: (\d+) row")


def _n_rows(text: str) -> int:
    """The rows of all tables without their headers and rules."""
    n_tables = text.count("| --- |")
    return sum(line.startswith("| ") for line in text.splitlines()) - 2 * n_tables


def test_the_verdict_is_the_first_line() -> None:
    """A mark, the sentence with its names as code, and where and when it was."""
    first, _, second, *_ = page([PAGED_RUN], limit=10**6).splitlines()
    assert first.startswith("❌ **perfsuite**: 5 cases regressed: `decode` is ")
    assert second.startswith("`smollm2-135m-q8_0/siso` on `host`, `llama: llama.cpp 0.5.0; kernels: AMD EPYC ")
    assert ", run from commit `" in second
    assert second.endswith("started `2026-03-01T02:00:00.000+00:00`.")


@pytest.mark.parametrize("limit", [13_200, 20_000, 40_000])
def test_a_limit_is_kept_and_what_was_left_out_is_counted(limit: int) -> None:
    """Shown rows and those that are told to be left out are all rows, and the failing ones are the last to go."""
    whole, cut = page([PAGED_RUN], limit=10**6), page([PAGED_RUN], limit=limit)
    left_out = _LEFT_OUT.search(cut)
    assert len(cut) <= limit
    assert left_out is not None
    assert _n_rows(cut) + int(left_out[1]) == _n_rows(whole)
    assert cut.count("| regressed |") == 5
    assert not _LEFT_OUT.search(whole)


def test_runs_for_which_there_is_no_room_are_counted() -> None:
    """Several runs share the limit; those that would have too little are told by their number."""
    runs = [synthetic_run(seed=seed) for seed in range(7)]
    text = page(runs, limit=40_000)
    assert len(text) <= 40_000
    assert text.count("**perfsuite**") == 3
    assert f"Left out for lack of room: {format_count(4, 'run')}._" in text


@given(WORDS)
@settings(max_examples=40, deadline=None)
def test_words_of_a_run_change_nothing_but_code(words: str) -> None:
    """Whatever a run says: no tag, link, picture, mention or cell more than in a run with a harmless name."""
    hostile, harmless = (rendered(page([run_of(each)], limit=10**6)) for each in (words, HARMLESS))
    assert hostile.outside == harmless.outside
    assert len(hostile.inside) == len(harmless.inside)
