"""The verdict in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.outcome import (
    Attribution,
    Carrier,
    Judgement,
    Outcome,
    PhaseAttribution,
    UniformShift,
    told_judgement,
)
from perfsuite.records.run_file import RunFile
from perfsuite.report.exports.markdown import page
from perfsuite.report.page.rows import columns_for
from perfsuite.report.summary_table import summary_text
from perfsuite.report.verdict_words import (
    Tone,
    carrier_words,
    case_change_words,
    change_notes,
    in_order_of_weight,
    outcome_words,
    passed_words,
    resolution_line,
    verdict_sentence,
    verdict_tone,
)
from perfsuite.testing.run_files import synthetic_run
from perfsuite.units import format_ns, format_ratio

from ..synthetic_judgements import PASSED


def passed(resolution_ratio: float | None, margin_ratio: float = 0.05, outcome: Outcome = Outcome.PASS) -> Judgement:
    judgement = told_judgement("phase/a/b/decode", "phase", outcome, "because")
    return replace(judgement, resolution_ratio=resolution_ratio, margin_ratio=margin_ratio)


def test_a_count_is_as_exact_as_it_is() -> None:
    """A thousandth of it is a change; a time's would be none."""
    count = told_judgement("counted/a/b/decode/reads", "counted", Outcome.REGRESSED, "because", 1.00024)
    assert case_change_words(count) == "changed by +0.024 %"
    assert case_change_words(replace(count, kind="phase")) == "takes as long as before"


def test_a_pass_stands_with_what_it_rules_out() -> None:
    """The outcome of a pass has its resolution, rounded up; that of others, and of what was not compared, has none."""
    assert outcome_words(passed(0.2384), "pass") == "pass at 24 %"
    assert outcome_words(passed(0.0201), "Pass") == "Pass at 2.1 %"
    assert outcome_words(passed(None), "pass") == "pass"
    assert outcome_words(replace(passed(4.0), step_share_ratio=0.002), "pass") == "pass by share"
    assert outcome_words(passed(0.24, outcome=Outcome.REGRESSED), "regressed") == "regressed"


@pytest.mark.parametrize(
    ("outcome", "change_ratio", "words"),
    [
        (Outcome.PASS, 0.063, "? at 5 %, looks faster"),
        (Outcome.PASS, 0.95, "? at 5 %, looks faster"),
        (Outcome.PASS, 0.953, "? at 5 %"),
        (Outcome.INCONCLUSIVE, 0.9, "?, looks faster"),
        (Outcome.INCONCLUSIVE, 1.2, "?"),
        (Outcome.IMPROVED, 0.5, "?"),
        (Outcome.INVALID, 0.5, "?"),
    ],
)
def test_what_looks_faster_is_no_plain_pass(outcome: Outcome, change_ratio: float, words: str) -> None:
    """A pass or an undecided case says so where its estimate is faster by more than its margin."""
    judgement = replace(passed(0.05, outcome=outcome), change_ratio=change_ratio)
    assert outcome_words(judgement, "?") == words


def test_the_coarsest_resolution_speaks_for_all_passes() -> None:
    """Down to what nothing is slower, and for which margin the engine has to be kept; shares count apart."""
    run = [passed(0.27), passed(0.24, 0.02), passed(0.05)]
    line = "  3 passed at 27 %: {} is slower by more; for 2 %, record again: "
    line += "--baseline=record keeps the build that later runs are measured beside"
    assert resolution_line(run) == line.format("nothing")
    assert passed_words(run) == " at 27 %"
    assert resolution_line([*run, passed(0.4, outcome=Outcome.INCONCLUSIVE)]) == line.format("none of them")
    run = [passed(0.27), replace(passed(4.0, 4.0), step_share_ratio=0.002)]
    line = "  1 passed at 27 % and 1 by their share of a step: nothing is slower by more; for 5 %"
    assert (resolution_line(run) or "").startswith(line)
    assert passed_words(run) == ", 1 of them at 27 %"


@pytest.mark.parametrize(
    "run",
    [
        [],
        [passed(0.05), replace(passed(4.0, 4.0), step_share_ratio=0.002)],
        [passed(None), passed(0.9, outcome=Outcome.INCONCLUSIVE)],
        [replace(passed(0.2), n_pairs=12)],
    ],
)
def test_what_reached_its_margin_needs_no_line(run: list[Judgement]) -> None:
    assert resolution_line(run) is None
    assert passed_words(run) == ""


APART = replace(PASSED, measured_ns=34_800_000, baseline_ns=34_600_000, change_ratio=1.034)


def _shown_by_each(judgement: Judgement) -> tuple[str, str, str]:
    """What terminal, Markdown and page show of a single case, as text."""
    run = replace(synthetic_run(), judgements=(judgement,))
    cells = (column.cell(judgement).text for column in columns_for([judgement], {}))
    terminal = summary_text([judgement], width=None, is_color=False)
    return terminal, page([run], limit=10**6), " ".join(cells)


def test_every_format_shows_the_same_baseline_and_the_change_that_is_judged() -> None:
    """Terminal, Markdown and page have the median of the baseline, and none the time that the change would make."""
    by_change_ns = APART.old_ns
    for text in _shown_by_each(APART):
        assert "34.6 ms" in text
        assert format_ns(by_change_ns) not in text
        assert format_ratio(1.034) in text


def test_a_change_that_is_no_quotient_has_a_footnote() -> None:
    """Terminal and Markdown end with what such a change is of; a quotient needs no word."""
    paired = replace(APART, n_pairs=7)
    (of_sessions,), (of_pairs,) = change_notes([PASSED, APART, APART]), change_notes([paired])
    assert "sentinels" in of_sessions
    assert "of the pairs" in of_pairs
    for judgement, note in ((APART, of_sessions), (paired, of_pairs)):
        assert all(text.count(note) == 1 for text in _shown_by_each(judgement)[:2])
    assert not change_notes([PASSED])
    assert not change_notes([replace(APART, **{name: None}) for name in ("measured_ns", "baseline_ns", "change_ratio")])


DECODE, PREFILL = "phase/a-q8_0/siso/decode", "phase/a-q8_0/siso/prefill"


def _case(case_id: str, outcome: Outcome, change_ratio: float | None = None) -> Judgement:
    return told_judgement(case_id, case_id.partition("/")[0], outcome, "because", change_ratio)


def _own(outcome: Outcome, count: int) -> list[Judgement]:
    return [_case(f"own/{outcome.value}/{number}", outcome) for number in range(count)]


def _run(*judgements: Judgement, attribution: Attribution | None = None, is_injected: bool = False) -> RunFile:
    return replace(
        synthetic_run(n_cases=7),
        judgements=judgements,
        attribution=attribution or Attribution(),
        is_injected=is_injected,
    )


def _carried(case_id: str, *roles: str, is_significant: bool = True) -> PhaseAttribution:
    carriers = tuple(
        Carrier(case_id=role, role=role, lost_ns=9, share_ratio=0.9, is_significant=is_significant) for role in roles
    )
    return PhaseAttribution(case_id=case_id, lost_ns=10, carriers=carriers, unexplained_ns=1)


def _bounded(case_id: str, outcome: Outcome, lower: float, change: float, upper: float | None) -> Judgement:
    return replace(_case(case_id, outcome, change), lower_ratio=lower, upper_ratio=upper)


KERNEL = "kernel/gemm/m64/f32"
OPEN = (
    _bounded(DECODE, Outcome.INCONCLUSIVE, 0.99, 1.01, 1.022),
    _bounded(PREFILL, Outcome.INCONCLUSIVE, 0.99, 1.01, None),
)
SUSPECTS = (
    *_own(Outcome.SUSPECT, 3),
    _case("operator/a/siso/decode/ffn_up", Outcome.SUSPECT, 4.0),
    _bounded(PREFILL, Outcome.SUSPECT, 1.04, 1.05, 1.06),
)
SLOWER = (_case(PREFILL, Outcome.REGRESSED, 1.05), _case(DECODE, Outcome.REGRESSED, 1.195))


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (_run(), "nothing was measured"),
        (_run(_case(DECODE, Outcome.PASS)), "the only case passed"),
        (_run(*_own(Outcome.PASS, 3)), "all 3 cases passed"),
        (_run(*_own(Outcome.NEW, 3)), "nothing to compare with yet; 3 cases have no baseline"),
        (
            _run(*_own(Outcome.PASS, 2), *_own(Outcome.NEW, 1)),
            "nothing slower found: 2 cases passed; 1 case has no baseline",
        ),
        (
            _run(*_own(Outcome.PASS, 39), *_own(Outcome.INCONCLUSIVE, 14)),
            "nothing slower found: 39 cases passed; 14 cases are undecided",
        ),
        (
            _run(OPEN[0], *_own(Outcome.PASS, 2)),
            "nothing slower found; decode undecided, up to +2.2 %",
        ),
        (
            _run(*OPEN, *_own(Outcome.PASS, 2), *_own(Outcome.INCONCLUSIVE, 13), *_own(Outcome.INVALID, 1)),
            "nothing slower found; decode and prefill undecided; 1 case is invalid; 13 other cases are undecided",
        ),
        (_run(*OPEN), "nothing could be judged; decode and prefill undecided"),
        (
            _run(OPEN[0], _case(PREFILL, Outcome.IMPROVED, 0.8)),
            "1 case improved: prefill is 20.0 % faster; decode undecided, up to +2.2 %",
        ),
        (
            _run(_bounded(PREFILL, Outcome.SUSPECT, 1.136, 1.218, 1.251), *_own(Outcome.PASS, 3)),
            "looks slower, not proven: prefill +21.8 % (+13.6 to +25.1)",
        ),
        (
            _run(*SUSPECTS, SLOWER[1], *_own(Outcome.INCONCLUSIVE, 1)),
            "1 case regressed: decode is 19.5 % slower; looks slower, not proven: prefill +5.0 % (+4.0 to +6.0), "
            "decode ffn_up +300.0 %, suspect 0 and 2 more; 1 case is undecided",
        ),
        (
            _run(replace(_case(PREFILL, Outcome.INVALID), n_pairs=4), replace(_case(KERNEL, Outcome.PASS), n_pairs=9)),
            "no whole phase was judged: 1 case passed; fewer than five pairs were measured; 1 case is invalid",
        ),
        (
            _run(replace(_case(PREFILL, Outcome.PASS), n_pairs=5), replace(_case(DECODE, Outcome.INVALID), n_pairs=4)),
            "nothing slower found: 1 case passed; 1 case is invalid",
        ),
        (
            _run(*_own(Outcome.INVALID, 2), *_own(Outcome.INCOMPARABLE, 1)),
            "nothing could be judged; 2 cases are invalid; 1 case cannot be compared with its baseline",
        ),
        (
            _run(*_own(Outcome.IMPOSSIBLE, 1), *_own(Outcome.SLOW, 3)),
            "1 case is faster than physics allows: impossible 0; "
            "3 cases are slower than the forecast allows: slow 0, slow 1 and 1 more",
        ),
        (
            _run(*SLOWER),
            "2 cases regressed: decode is 19.5 % slower and prefill is 5.0 % slower",
        ),
        (
            _run(*SLOWER, attribution=Attribution(phases=(_carried(DECODE, "ffn_swiglu"),))),
            "2 cases regressed: decode is 19.5 % slower, carried by ffn_swiglu, and prefill is 5.0 % slower",
        ),
        (
            _run(SLOWER[1], attribution=Attribution(phases=(_carried(DECODE, "a", is_significant=False),))),
            "1 case regressed: decode is 19.5 % slower",
        ),
        (
            _run(*SLOWER, attribution=Attribution(uniform_shift=UniformShift(ratio=1.1, n_cases=9))),
            "2 cases regressed: everything is 10.0 % slower, which points to frequency, memory, threads or build",
        ),
        (
            _run(_case("operator/a/siso/decode/ffn_up", Outcome.REGRESSED, 4.0)),
            "1 case regressed: decode ffn_up takes 4 times as long",
        ),
        (
            _run(SLOWER[1], _case(PREFILL, Outcome.IMPROVED, 0.8), *_own(Outcome.INCONCLUSIVE, 2)),
            "1 case regressed: decode is 19.5 % slower; 1 case improved: prefill is 20.0 % faster; "
            "2 cases are undecided",
        ),
        (_run(SLOWER[1], is_injected=True), "slowed down on purpose: 1 case regressed: decode is 19.5 % slower"),
    ],
)
def test_the_sentence_says_what_matters_most_first(run: RunFile, sentence: str) -> None:
    """What regressed with its carriers, then what breaks a bound, what improved, and what was not decided."""
    assert verdict_sentence(run) == sentence


def test_names_go_through_whoever_shows_the_sentence() -> None:
    """Each name, and nothing else, is handed to what escapes it; an interrupted run says so first."""
    assert verdict_sentence(replace(_run(), is_interrupted=True)) == "interrupted before anything was measured"
    run = replace(_run(*_own(Outcome.PASS, 2)), is_interrupted=True)
    assert verdict_sentence(run) == "interrupted: all 2 cases passed"
    run = _run(*SLOWER, *_own(Outcome.SLOW, 1), attribution=Attribution(phases=(_carried(DECODE, "role"),)))
    sentence = verdict_sentence(run, named=lambda name: f"<{name}>")
    assert sentence == (
        "2 cases regressed: <decode> is 19.5 % slower, carried by <role>, and <prefill> is 5.0 % slower; "
        "1 case is slower than the forecast allows: <slow 0>"
    )


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_tone_and_words(outcome: Outcome) -> None:
    """One failing case makes a run bad; one that was not decided makes it unsure; all else is good."""
    run = _run(*_own(Outcome.PASS, 2), *_own(outcome, 1))
    expected = Tone.BAD if outcome.fails else Tone.GOOD if outcome.decides else Tone.UNSURE
    assert verdict_tone(run) is expected
    assert verdict_sentence(run)


def test_carriers_are_few_and_sure_and_explained_phases_first() -> None:
    """Two are named, more are counted, of a shift none; then phases by change, and the rest by the time lost."""
    attribution = Attribution(phases=(_carried(DECODE, "a", "b", "c"),))
    assert carrier_words(DECODE, attribution) == "carried by a, b and 1 more"
    assert carrier_words(PREFILL, attribution) == ""
    assert carrier_words(DECODE, replace(attribution, uniform_shift=UniformShift(ratio=1.1, n_cases=3))) == ""
    long, short = (
        replace(_case(f"operator/{name}", Outcome.REGRESSED, 1.5), measured_ns=measured_ns)
        for name, measured_ns in (("long", 900), ("short", 90))
    )
    attribution = Attribution(phases=(_carried(PREFILL, "a"),))
    ordered = in_order_of_weight([short, long, SLOWER[1], SLOWER[0]], attribution)
    assert ordered == (SLOWER[0], SLOWER[1], long, short)
