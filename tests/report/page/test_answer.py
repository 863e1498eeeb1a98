"""The answer of the first screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.attribution import Attribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.page.answer import MAX_LINES, Answer, against_words, answer_of, sure_words
from perfsuite.report.page.findings import failures
from perfsuite.report.reproduce import reproductions
from perfsuite.report.run_file import RunFile
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


def test_without_phases_the_largest_changes_are_shown() -> None:
    """Those that fail first, no more than there is room for; a run of nothing has no line."""
    kernels = tuple(each for each in RUN.judgements if each.kind == "operator")
    answer = answered(replace(RUN, judgements=kernels))
    assert len(answer.lines) == MAX_LINES
    assert any(line.judgement.outcome.fails for line in answer.lines)
    empty = answered(replace(RUN, judgements=(), attribution=Attribution()))
    assert (empty.lines, empty.axis, empty.reading, empty.blames) == ((), None, "", ())
    bare = tuple(replace(each, lower_ratio=None, upper_ratio=None, margin_ratio=None) for each in RUN.judgements)
    assert answered(replace(RUN, judgements=bare)).reading == "Ring: a change without an interval."


def test_operators_that_carry_a_change_are_named_with_their_share() -> None:
    """Under their phase, in the order of the lines, and what none explains; where all moved alike none is."""
    prefill, decode = answered(RUN).blames
    assert prefill.told.startswith("prefill lost ")
    assert decode.told.startswith("decode lost ")
    tree = next(each for each in RUN.attribution.phases if each.case_id.endswith("/decode"))
    first, *_, last = decode.parts
    assert first.branch.role == tree.carriers[0].role
    assert first.share == f"{tree.carriers[0].share_ratio * 100:.0f} %"
    assert last.branch.role == "unexplained"
    many = replace(tree, carriers=tree.carriers[:1] * 6)
    (blame,) = answered(replace(RUN, attribution=Attribution(phases=(many,)))).blames
    assert [part.branch.role for part in blame.parts][-2:] == ["3 more", "unexplained"]
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


def test_a_page_of_new_cases_says_what_comes_next() -> None:
    """Record them; once recorded, measure again after a change; without the run's arguments no command is made up."""
    new = only(Outcome.NEW, STORED)
    why, command = answered(new).steps[0]
    assert "reference" in why
    assert "--baseline=record" in command
    origin = replace(new.origin, arguments=(*new.origin.arguments, "--baseline=record"))
    why, command = answered(replace(new, origin=origin)).steps[0]
    assert "After your change" in why
    assert "--baseline" not in command
    assert {text for _, text in answered(replace(new, origin=NO_ORIGIN)).steps} == {""}
    assert {line.speed for line in answered(new).lines if line.name == "decode"} == {"170 tokens/s"}
    assert answered(new).axis is None


def test_what_it_was_compared_with_is_told() -> None:
    assert "no baseline is stored" in against_words(only(Outcome.NEW, STORED))
    assert "another setup" in against_words(only(Outcome.INCOMPARABLE, STORED))
    assert against_words(replace(STORED, judgements=())) == ""


def test_how_sure_it_is_is_told() -> None:
    lines = answered(RUN).lines
    assert sure_words(lines) == "10 pairs; a slowdown of 3 % would be seen"
    bare = [
        replace(
            line, judgement=replace(line.judgement, n_pairs=None, resolution_ratio=None, smallest_effect_ratio=None)
        )
        for line in lines
    ]
    assert sure_words(bare) == f"{len(lines[0].judgement.samples_ns)} replicates"
    effect = [
        replace(line, judgement=replace(line.judgement, resolution_ratio=None, smallest_effect_ratio=1.126))
        for line in lines
    ]
    assert sure_words(effect).endswith("a slowdown of 13 % would be seen")
    assert sure_words(()) == ""
