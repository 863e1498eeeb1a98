"""What was measured, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.engine_words import commit_title, engine_words


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
