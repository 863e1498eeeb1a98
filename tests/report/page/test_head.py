"""The head of the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from perfsuite.records.attribution import Attribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName, RunOrigin
from perfsuite.report.page.head import Head, page_head
from perfsuite.report.run_file import RunFile
from perfsuite.report.verdict_words import verdict_sentence
from perfsuite.testing.run_files import synthetic_run

from .conftest import page_run

RUN = synthetic_run(n_cases=120)


def head_of(run: RunFile) -> Head:
    return page_head(page_run(run))


def only(outcome: Outcome) -> RunFile:
    return replace(RUN, judgements=tuple(replace(each, outcome=outcome) for each in RUN.judgements[:5]))


def test_the_verdict_is_all_of_the_sentence() -> None:
    """What matters most comes first, as on the terminal; where one clause says it all, that is it."""
    head = head_of(RUN)
    assert "5 cases regressed" in head.verdict
    assert "ffn_swiglu" in head.verdict
    assert f"{head.verdict[:-1]}; {head.further[:-1]}".lower() == verdict_sentence(RUN).lower()
    head = head_of(only(Outcome.PASS))
    assert (head.verdict, head.further, head.tone_word) == ("All 5 cases passed.", "", "Passed")
    head = head_of(replace(RUN, judgements=()))
    assert (head.verdict, head.counts, head.n_cases) == ("Nothing was measured.", {}, 0)


def test_tones_and_counts_say_how_a_run_ended() -> None:
    """A word for failed, not judged and passed, which begins the title; counts are in the order of acting."""
    words = {head_of(only(outcome)).tone_word for outcome in (Outcome.SLOW, Outcome.NEW, Outcome.PASS)}
    assert len(words) == 3
    assert head_of(RUN).title.startswith("Failed: host, ")
    assert not head_of(only(Outcome.INVALID)).is_judged
    assert not head_of(only(Outcome.NEW)).is_judged
    assert head_of(RUN).is_judged
    counts = head_of(RUN).counts
    assert counts == Counter(each.outcome for each in RUN.judgements)
    assert [each.fails for each in counts] == sorted((each.fails for each in counts), reverse=True)


def test_what_must_be_known_is_remarked() -> None:
    """A run slowed on purpose, one broken off, and one in which everything moved say so."""
    shift = Attribution(uniform_shift=UniformShift(ratio=1.12, n_cases=50))
    odd = replace(RUN, is_injected=True, is_interrupted=True, attribution=shift)
    injected, interrupted, shifted = head_of(odd).remarks
    assert "--perf-inject" in injected
    assert "broken off" in interrupted
    assert shifted.startswith("Everything is 12.0 % slower (50 cases moved alike)")
    assert head_of(RUN).remarks == ()


def test_the_circumstances_are_named() -> None:
    """With what was compared in pairs, which board it was, and each note on having it once."""
    assert head_of(RUN).facts["Compared with"].startswith("settings ubatch=512: old and new by turns")
    assert head_of(replace(RUN, against=None)).facts["Compared with"].startswith("the stored baseline of host")
    board = BoardName(identity="0123456789abcdef", hostname="shelf-2", is_linked=True)
    for name, each in (("Board", board), ("Machine", replace(board, is_linked=False))):
        assert head_of(replace(RUN, origin=RunOrigin(board=each))).facts[name] == "0123456789abcdef (shelf-2)"
    assert not {"Board", "Machine"} & head_of(RUN).facts.keys()
    notes = ("governor 'performance' cannot be set", "the link was lost", "the link was lost")
    assert head_of(replace(RUN, device_notes=notes)).notes == notes[:2]
