"""The summary of a job."""

from __future__ import annotations

from perfsuite.report.exports.github_summary import LIMIT_BYTES, summary_text
from perfsuite.testing.run_files import synthetic_run

from .test_markdown import WIDEST


def test_a_summary_has_all_cases() -> None:
    """There is room for every case of a usual run."""
    run = synthetic_run()
    text = summary_text([run])
    shown = [each for each in run.judgements if f"`{each.case_id}`" in text]
    assert "Left out" not in text
    assert len(shown) == sum(each.outcome.value not in ("invalid", "incomparable") for each in run.judgements)


def test_a_summary_is_never_longer_than_github_takes() -> None:
    """Runs of a thousand cases with the widest names stay below 1 MiB of UTF-8, and say what was left out."""
    text = summary_text([synthetic_run(n_cases=1_000, seed=seed, names=WIDEST) for seed in range(12)])
    assert 500_000 < len(text.encode()) <= LIMIT_BYTES
    assert "Left out for lack of room" in text
    assert text.count("**perfsuite**") == 12
