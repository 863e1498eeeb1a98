"""The first screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.outcome import Attribution, Outcome, UniformShift
from perfsuite.records.run_file import RunFile
from perfsuite.report.page.findings import failures
from perfsuite.report.page.head import MAX_LINES, Answer, Head, answer_of, page_head
from perfsuite.report.reproduce import reproductions
from perfsuite.report.verdict_words import verdict_sentence
from perfsuite.testing.run_files import synthetic_run

from .conftest import page_run

RUN = synthetic_run(n_cases=120)
STORED = synthetic_run(n_cases=120, against=None)


def answered(run: RunFile) -> Answer:
    return answer_of(page_run(run), failures(run, reproductions(run)))


def only(outcome: Outcome, run: RunFile = RUN) -> RunFile:
    changed = {} if outcome is Outcome.INCONCLUSIVE else {"change_ratio": None, "baseline_ns": None}
    told = tuple(replace(each, outcome=outcome, **changed) for each in run.judgements if each.measured_ns)  # type: ignore[arg-type]
    return replace(run, judgements=told, attribution=Attribution())


def test_each_phase_that_matters_has_a_line() -> None:
    """A phase of next to no time has none, unless it fails or looks slower."""
    answer = answered(RUN)
    lines = {line.name: line for line in answer.lines}
    assert list(lines) == ["prefill", "decode", "end_to_end"]
    assert len(lines) <= MAX_LINES
    tiny = next(each for each in RUN.judgements if each.case_id.endswith("/sampling"))
    for outcome in (Outcome.REGRESSED, Outcome.SUSPECT):
        failing = replace(tiny, outcome=outcome)
        run = replace(RUN, judgements=tuple(failing if each is tiny else each for each in RUN.judgements))
        assert "sampling" in {line.name for line in answered(run).lines}


@pytest.mark.parametrize(
    ("outcome", "change_ratio", "word"),
    [
        (Outcome.PASS, 1.01, "as before"),
        (Outcome.PASS, 0.06, "looks faster"),
        (Outcome.INCONCLUSIVE, 0.9, "looks faster"),
        (Outcome.INCONCLUSIVE, 1.1, "undecided"),
        (Outcome.SUSPECT, 1.2, "looks slower"),
    ],
)
def test_the_word_beside_a_change_contradicts_no_figure(outcome: Outcome, change_ratio: float, word: str) -> None:
    """What passes, or is open, is 'as before' or 'undecided' only where its estimate is no gain beyond the margin."""
    run = only(outcome)
    changed = tuple(replace(each, change_ratio=change_ratio) for each in run.judgements)
    assert {line.word for line in answered(replace(run, judgements=changed)).lines} == {word}


def test_operators_that_carry_a_change_are_named_with_their_share() -> None:
    """Under their phase, in the order of the lines, and what none explains; where all moved alike none is."""
    prefill, decode = answered(RUN).blames
    assert prefill.sentence.startswith("prefill lost ")
    assert decode.sentence.startswith("decode lost ")
    tree = next(each for each in RUN.attribution.phases if each.case_id.endswith("/decode"))
    (first, share, *_), *_, (last, *_) = decode.parts
    assert first.role == tree.carriers[0].role
    assert share == f"{tree.carriers[0].share_ratio * 100:.0f} %"
    assert last.role == "unexplained"
    shift = UniformShift(ratio=1.1, n_cases=50)
    assert answered(replace(RUN, attribution=replace(RUN.attribution, uniform_shift=shift))).blames == ()


def test_an_undecided_run_says_what_to_do() -> None:
    """More pairs or replicates by a command, and a quiet machine; a run that failed has no such hint."""
    paired = answered(only(Outcome.INCONCLUSIVE))
    why, command = paired.steps[0]
    assert "pairs decide" in why
    assert "--perf-budget=" in command
    assert "Close other programs" in paired.hint
    stored = answered(only(Outcome.INCONCLUSIVE, STORED))
    assert "--perf-replicates=20" in stored.steps[0][1]
    assert answered(RUN).hint == ""


def head_of(run: RunFile) -> Head:
    return page_head(page_run(run))


def test_the_verdict_is_all_of_the_sentence() -> None:
    """What matters most comes first, as on the terminal; where one clause says it all, that is it."""
    head = head_of(RUN)
    assert "5 cases regressed" in head.verdict
    assert "ffn_swiglu" in head.verdict
    assert f"{head.verdict[:-1]}; {head.further[:-1]}".lower() == verdict_sentence(RUN).lower()
    passed = tuple(replace(each, outcome=Outcome.PASS) for each in RUN.judgements[:5])
    head = head_of(replace(RUN, judgements=passed))
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
