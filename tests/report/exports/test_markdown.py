"""The comment for a pull request."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from perfsuite.report.exports.markdown import (
    LIMIT_BYTES,
    LIMIT_CHARACTERS,
    comment_text,
    page,
    summary_text,
)
from perfsuite.testing.run_files import synthetic_run

from .conftest import HARMLESS, WORDS, run_of
from .markdown_reader import rendered

PAGED_RUN = synthetic_run()
_LEFT_OUT = re.compile(r"Left out to save room: (\d+) row")


def _n_rows(text: str) -> int:
    n_tables = text.count("| --- |")
    return sum(line.startswith("| ") for line in text.splitlines()) - 2 * n_tables


@pytest.mark.parametrize("limit", [13_200, 20_000, 40_000])
def test_a_limit_is_kept_and_what_was_left_out_is_counted(limit: int) -> None:
    """Shown rows and those that are reported as left out are all rows, and the failing ones are the last to go."""
    whole, cut = page([PAGED_RUN], limit=10**6), page([PAGED_RUN], limit=limit)
    left_out = _LEFT_OUT.search(cut)
    assert len(cut) <= limit
    assert left_out is not None
    assert _n_rows(cut) + int(left_out[1]) == _n_rows(whole)
    assert cut.count("| regressed |") == 5
    assert not _LEFT_OUT.search(whole)


@given(WORDS)
@settings(max_examples=40, deadline=None)
def test_words_of_a_run_change_nothing_but_code(words: str) -> None:
    """Whatever a run says: no tag, link, picture, mention or cell more than in a run with a harmless name."""
    hostile, harmless = (rendered(page([run_of(each)], limit=10**6)) for each in (words, HARMLESS))
    assert hostile.outside == harmless.outside
    assert len(hostile.inside) == len(harmless.inside)


#: As long as a shown name can get, and as wide: each sign takes several characters, or two units of UTF-16.
WIDEST = ["@`|" * 100 + str(number) for number in range(300)] + ["🧪" * 300]


@pytest.mark.parametrize("n_runs", [1, 12])
def test_a_comment_is_never_longer_than_github_takes(n_runs: int) -> None:
    """A thousand cases with the widest names, in one run or in a dozen, stay below the limit in UTF-16, too."""
    runs = [synthetic_run(n_cases=1_000, seed=seed, names=WIDEST) for seed in range(n_runs)]
    text = comment_text(runs)
    assert len(text.encode("utf-16-le")) // 2 < LIMIT_CHARACTERS
    assert "Left out to save room" in text
    assert "**perfsuite**: 5 cases regressed" in text


def test_a_summary_has_all_cases() -> None:
    run = synthetic_run()
    text = summary_text([run])
    shown = [each for each in run.judgements if f"`{each.case_id}`" in text]
    assert "Left out" not in text
    assert len(shown) == sum(each.outcome.value not in ("invalid", "incomparable") for each in run.judgements)
    text = summary_text([synthetic_run(n_cases=1_000, seed=seed, names=WIDEST) for seed in range(12)])
    assert 500_000 < len(text.encode()) <= LIMIT_BYTES
    assert "Left out to save room" in text
    assert text.count("**perfsuite**") == 12
