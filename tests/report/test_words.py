"""What was measured, when, and from which commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.words import commit_title, engine_words, when_words


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (
            "llama b6123, ggml 0.25.3 abc1234, build 0123456789abcdef",
            "llama.cpp b6123 (abc1234), build 0123456789abcdef",
        ),
        ("llama 0.5.0, ggml 0.25.3 unknown, build a", "llama.cpp 0.5.0, build a"),
        ("AMD EPYC (Intel(R) OpenCL)", "AMD EPYC (Intel(R) OpenCL)"),
    ],
)
def test_the_engine_has_its_name_and_commit(subject: str, name: str) -> None:
    assert engine_words({"llama": subject}) == name


def test_a_commit_is_the_engines_only_where_somebody_says_so() -> None:
    """Without ``--perf-commit`` the commit of a run is that of the folder where pytest ran."""
    assert commit_title(NO_ORIGIN) == "Run from commit"
    assert commit_title(replace(NO_ORIGIN, arguments=("--perf-commit=abc",))) == "Measured commit"


@pytest.mark.parametrize(
    ("started_at", "told"),
    [
        ("2026-03-01T02:00:59.000+00:00", "2026-03-01 02:00 UTC"),
        ("2026-03-01T02:00:00+02:00", "2026-03-01 00:00 UTC"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        ("last night", "last night"),
    ],
)
def test_times_are_told_in_utc(started_at: str, told: str) -> None:
    """A time, with its zone or in UTC, is printed to the minute in UTC, any other text as it is."""
    assert when_words(started_at) == told
