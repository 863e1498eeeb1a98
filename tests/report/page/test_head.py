"""The head of the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from perfsuite.records.attribution import Attribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName, RunOrigin
from perfsuite.report.page.head import page_head
from perfsuite.report.run_file import RunFile
from perfsuite.report.verdict_words import verdict_sentence
from perfsuite.testing.run_files import synthetic_run

RUN = synthetic_run(n_cases=120)


def only(outcome: Outcome) -> RunFile:
    """A run whose cases all have one outcome."""
    return replace(RUN, judgements=tuple(replace(each, outcome=outcome) for each in RUN.judgements[:5]))


def test_the_verdict_is_all_of_the_sentence() -> None:
    """What matters most comes first; both sentences together say what the terminal says."""
    head = page_head(RUN)
    assert "5 cases regressed" in head.verdict
    assert "ffn_swiglu" in head.verdict
    assert f"{head.verdict[:-1]}; {head.further[:-1]}".lower() == verdict_sentence(RUN).lower()


def test_a_short_verdict_is_one_sentence() -> None:
    """Where one clause says it all, nothing further is said."""
    head = page_head(only(Outcome.PASS))
    assert (head.verdict, head.further, head.tone_word) == ("All 5 cases passed.", "", "Passed")


def test_failures_are_counted_first() -> None:
    """Each outcome of the run has its count, in the order in which people must act."""
    counts = page_head(RUN).counts
    assert counts == Counter(each.outcome for each in RUN.judgements)
    assert [each.fails for each in counts] == sorted((each.fails for each in counts), reverse=True)


def test_tones_have_words() -> None:
    """A run that fails, one that is not judged and one that passed differ by a word, and the title begins with it."""
    words = {page_head(only(outcome)).tone_word for outcome in (Outcome.SLOW, Outcome.NEW, Outcome.PASS)}
    assert len(words) == 3
    assert page_head(RUN).title.startswith("Failed: host, ")


def test_what_must_be_known_is_remarked() -> None:
    """A run slowed on purpose, one broken off, and one in which everything moved say so."""
    shift = Attribution(uniform_shift=UniformShift(ratio=1.12, n_cases=50))
    odd = replace(RUN, is_injected=True, is_interrupted=True, attribution=shift)
    injected, interrupted, shifted = page_head(odd).remarks
    assert "--perf-inject" in injected
    assert "broken off" in interrupted
    assert shifted.startswith("Everything is 12.0 % slower (50 cases moved alike)")
    assert page_head(RUN).remarks == ()


def test_a_run_without_cases_has_a_head() -> None:
    """Nothing measured is said as that, and no outcome is counted."""
    head = page_head(replace(RUN, judgements=()))
    assert (head.verdict, head.counts, head.n_cases) == ("Nothing was measured.", {}, 0)


def test_what_nobody_judged_is_not_called_good() -> None:
    """A run of new or invalid cases alone was not judged, one with a case that passed was."""
    assert not page_head(only(Outcome.INVALID)).is_judged
    assert not page_head(only(Outcome.NEW)).is_judged
    assert page_head(RUN).is_judged


def test_the_other_side_is_named() -> None:
    """A comparison in pairs says with what; one with baselines has no such line."""
    assert page_head(RUN).facts["Compared with"] == "settings ubatch=512, in pairs"
    assert "Compared with" not in page_head(replace(RUN, against=None)).facts


def test_boards_of_a_kind_are_named() -> None:
    """A board that was reached over a link has its identity and host name beside its device; so has a machine."""
    board = BoardName(identity="0123456789abcdef", hostname="shelf-2", is_linked=True)
    for name, each in (("Board", board), ("Machine", replace(board, is_linked=False))):
        assert page_head(replace(RUN, origin=RunOrigin(board=each))).facts[name] == "0123456789abcdef (shelf-2)"
    assert not {"Board", "Machine"} & page_head(RUN).facts.keys()


def test_what_having_the_device_came_to_is_noted() -> None:
    """Each note once, in their order."""
    notes = ("governor 'performance' cannot be set", "the link was lost", "the link was lost")
    assert page_head(replace(RUN, device_notes=notes)).notes == notes[:2]
