"""The comment for a pull request."""

from __future__ import annotations

import pytest

from perfsuite.report.exports.markdown import LIMIT_CHARACTERS, MARKER, comment_text
from perfsuite.testing.run_files import synthetic_run

from .markdown_reader import rendered

#: As long as a shown name can get, and as wide: each sign takes several characters, or two units of UTF-16.
WIDEST = ["@`|" * 100 + str(number) for number in range(300)] + ["🧪" * 300]


def test_a_bot_finds_its_comment_by_the_first_line() -> None:
    """The marker stands alone on the first line and is not shown."""
    text = comment_text([synthetic_run()])
    assert text.startswith(f"{MARKER}\n❌ **perfsuite**")
    assert text.count(MARKER) == 1
    assert "perfsuite: comment" not in "".join(rendered(text).outside)


@pytest.mark.parametrize("n_runs", [1, 12])
def test_a_comment_is_never_longer_than_github_takes(n_runs: int) -> None:
    """A thousand cases with the widest names, in one run or in a dozen, stay below the limit in UTF-16, too."""
    runs = [synthetic_run(n_cases=1_000, seed=seed, names=WIDEST) for seed in range(n_runs)]
    text = comment_text(runs)
    assert len(text.encode("utf-16-le")) // 2 < LIMIT_CHARACTERS
    assert "Left out for lack of room" in text
    assert "**perfsuite**: 5 cases regressed" in text


def test_what_regressed_is_open_and_the_rest_folded() -> None:
    """One table stands before the first fold, and every fold is closed again."""
    text = comment_text([synthetic_run()])
    before, *_ = text.split("<details>")
    assert before.count("| regressed |") == 5
    assert text.count("<details>") == text.count("</details>") > 3
