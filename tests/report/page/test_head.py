"""The head of the page."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.outcome import Attribution, Outcome, UniformShift
from perfsuite.records.run_file import RunFile
from perfsuite.report.page.head import Head, page_head
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


def test_what_must_be_known_is_remarked() -> None:
    """A run slowed on purpose, one broken off, and one in which everything moved say so."""
    shift = Attribution(uniform_shift=UniformShift(ratio=1.12, n_cases=50))
    odd = replace(RUN, is_injected=True, is_interrupted=True, attribution=shift)
    injected, interrupted, shifted = head_of(odd).remarks
    assert "--perf-inject" in injected
    assert "broken off" in interrupted
    assert shifted.startswith("Everything is 12.0 % slower (50 cases moved alike)")
    assert head_of(RUN).remarks == ()
