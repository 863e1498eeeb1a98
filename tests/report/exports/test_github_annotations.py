"""Workflow commands, as the runner of GitHub Actions reads them."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given, settings

from perfsuite.records.outcome import Outcome, told_judgement
from perfsuite.records.run_file import RunFile
from perfsuite.report.exports.github_annotations import annotations_text
from perfsuite.report.exports.markdown_text import one_line
from perfsuite.testing.run_files import synthetic_run

from .conftest import HARMLESS, WORDS, run_of

_COMMAND = re.compile(r"::(?P<level>notice|error|warning) title=(?P<title>[^:,\r\n]*)::(?P<message>.*)")


def _read(text: str) -> list[tuple[str, str, str]]:
    """Level, title and message of each line, unescaped as the runner does it."""
    found = [_COMMAND.fullmatch(line) for line in text.splitlines()]
    assert all(found)
    return [(each["level"], _unescaped(each["title"]), _unescaped(each["message"])) for each in found if each]


def _unescaped(text: str) -> str:
    for code, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, sign)
    return text


def _run(n_slow: int, n_invalid: int = 0) -> RunFile:
    judgements = [told_judgement(f"own/{number}", "own", Outcome.SLOW, "too slow") for number in range(n_slow)]
    judgements += [
        told_judgement(f"own/i{number}", "own", Outcome.INVALID, f"reason {number}") for number in range(n_invalid)
    ]
    return replace(synthetic_run(n_cases=7), judgements=tuple(judgements))


def test_ten_errors_are_shown_and_of_eleven_the_tenth_counts_the_rest() -> None:
    """GitHub shows ten of a level: the last says how many are left out; warnings have their own ten."""
    ten, eleven = (_read(annotations_text([_run(n, n)])) for n in (10, 11))
    for level, noun in (("error", "failing cases"), ("warning", "reasons")):
        assert [title for each, title, _ in ten if each == level].count("perfsuite") == 0
        *_, (_, _, last) = [each for each in eleven if each[0] == level]
        assert sum(each[0] == level for each in ten) == sum(each[0] == level for each in eleven) == 10
        assert last == f"2 more {noun}, which the report of the run has"


@given(WORDS)
@settings(max_examples=40, deadline=None)
def test_words_of_a_run_stay_in_their_line(words: str) -> None:
    """Every line is one command whatever a run says, and the error on a case with the words has them."""
    run = run_of(words)
    read = _read(annotations_text([run]))
    assert len(read) == len(_read(annotations_text([run_of(HARMLESS)])))
    first_error = next(message for level, _, message in read if level == "error")
    assert f"phase/smollm2-135m-q8_0/siso/prefill: {one_line(words, max_characters=500)}" in first_error
