"""The words for levels."""

from __future__ import annotations

import pytest

from perfsuite.records.trace_levels import DEFAULT_LEVELS, LEVELS, TraceLevel, level_words, parse_levels


def test_a_level_brings_what_it_is_of_no_use_without() -> None:
    """Counters need operators, threads only tokens; all words are all levels, and nothing is a word."""
    levels = parse_levels("counters", "--trace")
    assert levels & parse_levels("ends", "--trace") == parse_levels("ends", "--trace")
    assert parse_levels("ends", "--trace") & parse_levels("operator", "--trace") == parse_levels("operator", "--trace")
    assert parse_levels("threads", "--trace") == TraceLevel.THREADS | TraceLevel.TOKEN
    together = TraceLevel(0)
    for level in TraceLevel:
        together |= level
    assert (parse_levels(",".join(LEVELS), "--trace"), level_words(TraceLevel(0))) == (together, "nothing")


@pytest.mark.parametrize("text", [DEFAULT_LEVELS, "threads", ",".join(LEVELS)])
def test_words_are_read_back(text: str) -> None:
    levels = parse_levels(text, "--trace")
    assert parse_levels(level_words(levels), "--trace") == levels
