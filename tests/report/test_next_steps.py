"""What to do next after a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pytest

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.next_steps import MAX_STEPS, EndedRun, next_steps

from ..synthetic_judgements import case

ALONE = ("--device=host",)
IN_PAIRS = ("--device=host", "--against=/old/lib")


def steps(found: Sequence[Judgement], *arguments: str, report: str | None = "r/report.html") -> dict[str, str]:
    """Return what must be done, with the command of each step."""
    origin = RunOrigin(arguments=arguments or ALONE)
    run = EndedRun(judgements=tuple(found), run_path="r/run.json", report_path=report, origin=origin)
    head, *lines = next_steps(run) or ("what next:",)
    assert head == "what next:"
    told: dict[str, str] = {}
    for line in lines:
        if line.startswith("     "):
            told[next(reversed(told))] = line.strip()
        else:
            told[line[5:].rstrip(":")] = ""
    assert len(told) <= MAX_STEPS
    return told


def commands(found: Sequence[Judgement], *arguments: str) -> list[list[str]]:
    """Return the commands, split into words."""
    return [shlex.split(command) for command in steps(found, *arguments).values()]


def paired(outcome: Outcome, **changes: object) -> Judgement:
    """A phase that was compared in pairs."""
    return case("phase/a/b/decode", outcome, n_pairs=20, **changes)


def test_a_regression_is_made_sure_of_and_looked_at_and_perhaps_accepted() -> None:
    """In pairs with the old build, the report, and the approval where the baselines lie."""
    again, look, accept = commands([case("phase/a/b/decode", Outcome.REGRESSED)])
    assert again == ["pytest", "--device=host", "-k", "[phase/a/b/decode]", "--against=FOLDER"]
    assert look == ["r/report.html"]
    assert accept[:5] == ["perfsuite", "baseline", "approve", "r/run.json", "--reason"]
    *_, accept = commands([case("phase/a/b/decode", Outcome.REGRESSED)], *ALONE, "--baseline-dir=b c")
    assert accept[-2:] == ["--baseline-dir", "b c"]


@pytest.mark.parametrize("outcome", [Outcome.REGRESSED, Outcome.IMPROVED, Outcome.NEW])
def test_counts_are_looked_at_and_kept_and_need_no_pairs(outcome: Outcome) -> None:
    """They are exact."""
    *look, keep = commands([case("counted/a/b/decode/reads", outcome)], "--device=counted")
    assert keep == ["pytest", "--device=counted", "--baseline=record"]
    assert look == ([["r/report.html"]] if outcome is Outcome.REGRESSED else [])


def test_a_regression_in_pairs_or_on_purpose_is_no_reference() -> None:
    """It is measured again as it was, and neither approval nor record is advised."""
    told = commands([paired(Outcome.REGRESSED)], *IN_PAIRS)
    assert told == [["pytest", *IN_PAIRS, "-k", "[phase/a/b/decode]"], ["r/report.html"]]
    found = [case(f"phase/a/b/{each.value}", each) for each in (Outcome.REGRESSED, Outcome.IMPROVED, Outcome.NEW)]
    on_purpose = str(steps(found, *ALONE, "--perf-inject=SWIGLU=20"))
    assert "approve" not in on_purpose
    assert "record" not in on_purpose


def test_what_breaks_a_bound_is_calibrated_and_measured_again() -> None:
    """The forecast may not know the device; what is faster than physics is named and measured again."""
    calibrate, again, _ = commands([case("kernel/add/n8/f32", Outcome.SLOW, limit_ns=1000)])
    assert calibrate == ["perfsuite", "calibrate", "--device=host"]
    assert again == ["pytest", "--device=host", "-k", "[kernel/add/n8/f32]"]
    told = steps([case("kernel/add/n8/f32", Outcome.IMPOSSIBLE)])
    assert next(iter(told)).startswith("kernel/add/n8/f32 came out faster than physics allows")


def test_a_limit_that_is_no_forecasts_is_not_calibrated_away() -> None:
    """What a recorder or the binding costs has no forecast: it is measured again."""
    again, look = commands([case("overhead/layer/decode", Outcome.SLOW)])
    assert again == ["pytest", "--device=host", "-k", "[overhead/layer/decode]"]
    assert look == ["r/report.html"]


def test_what_is_invalid_says_what_to_free_or_mend() -> None:
    """The commonest reason is in the step; a lost link has nothing to do with other programs."""
    reason = "waited 50 % of the time; free the machine and run again"
    busy = [case(f"phase/a/b/{at}", Outcome.INVALID, reason=reason) for at in range(3)]
    (why,) = steps([*busy, case("phase/a/b/x", Outcome.INVALID, reason="a sample is 0 ns")])
    assert why == "free the machine for what could not be measured (waited 50 % of the time), then"
    (why,) = steps(
        [case("phase/a/b/x", Outcome.INVALID, reason="the link was lost after 2 of 5 replicates; run again")]
    )
    told = "the link was lost after 2 of 5 replicates"
    assert why == f"fix the cause of what could not be measured ({told}), then"


def test_what_is_incomparable_names_the_field() -> None:
    """The reason says which field differs, and the command records a reference of its own."""
    told = steps([case("phase/a/b/decode", Outcome.INCOMPARABLE, reason="the baseline was recorded with threads 4")])
    assert told == {
        "measure as the baseline was, or keep this as a reference of its own "
        "(the baseline was recorded with threads 4)": "pytest --device=host --baseline=record"
    }


@pytest.mark.parametrize("outcome", [Outcome.SUSPECT, Outcome.INCONCLUSIVE])
def test_pairs_that_do_not_decide_say_how_many_more(outcome: Outcome) -> None:
    """Their time grows with their number; a case that needs thousands does not set that of the others."""
    told = steps([paired(outcome, n_more_pairs=20)], *IN_PAIRS)
    assert told == {
        "let about 20 more pairs decide phase/a/b/decode": f"pytest {' '.join(IN_PAIRS)} --perf-budget=180s"
    }
    found = [paired(outcome, n_more_pairs=each) for each in (10, 9000)]
    assert any("about 10 more pairs" in why for why in steps(found, *IN_PAIRS))


def test_the_pairs_that_what_is_suspect_needs_are_advised_alone() -> None:
    """A second budget, for cases that are only undecided, would leave the choice to the reader."""
    found = [paired(Outcome.INCONCLUSIVE, n_more_pairs=90), paired(Outcome.SUSPECT, n_more_pairs=20)]
    assert [each.partition(" decide")[0] for each in steps(found, *IN_PAIRS)] == ["let about 20 more pairs"]


@pytest.mark.parametrize(("budget", "longer"), [("30", "60s"), ("30s", "60s"), ("2m", "240s")])
def test_the_time_for_pairs_starts_from_what_was_given(budget: str, longer: str) -> None:
    (command,) = commands([paired(Outcome.INCONCLUSIVE, n_more_pairs=20)], *IN_PAIRS, f"--perf-budget={budget}")
    assert command[-1] == f"--perf-budget={longer}"


def test_replicates_that_do_not_decide_are_doubled_where_there_are_times() -> None:
    """Those of the run, where it says how many; a trace's cases are looked up instead."""
    (command,) = commands([case("phase/a/b/decode", Outcome.INCONCLUSIVE)], *ALONE, "--perf-replicates=7")
    assert command == ["pytest", "--device=host", "-k", "[phase/a/b/decode]", "--perf-replicates=14"]
    told = steps([case("trace/balance/x", Outcome.INCONCLUSIVE, samples_ns=())])
    assert list(told.values()) == ["r/report.html"]


def test_what_is_new_or_better_is_kept_and_what_passed_asks_for_nothing() -> None:
    """New cases unless something failed; an improvement as the reference, after pairs by a run of its own."""
    new = case("phase/a/b/decode", Outcome.NEW)
    assert commands([new]) == [["pytest", "--device=host", "--baseline=record"]]
    assert "record" not in str(steps([new, case("phase/a/b/prefill", Outcome.SLOW)]))
    (alone,) = commands([case("phase/a/b/decode", Outcome.IMPROVED)])
    assert alone[:4] == ["perfsuite", "baseline", "approve", "r/run.json"]
    assert commands([paired(Outcome.IMPROVED)], *IN_PAIRS) == [["pytest", "--device=host", "--baseline=record"]]
    assert steps([case("phase/a/b/decode")]) == {}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_is_answered_without_a_report(outcome: Outcome) -> None:
    """Where no page was written, no step points to one."""
    assert "report.html" not in str(steps([case("phase/a/b/decode", outcome)], report=None))


def test_a_name_steers_no_terminal() -> None:
    """Neither why nor command hold an escape sequence of a case's name."""
    found = [case("kernel/\x1b[31mred/x", outcome, reason="\x1b[2J") for outcome in Outcome]
    for judgement in found:
        assert "\x1b" not in str(list(steps([judgement]).items())).replace("\\x1b", "")
        assert all(each.isprintable() for line in steps([judgement]).items() for each in "".join(line))


def test_steps_come_by_weight() -> None:
    """As the tables and the verdict's sentence have it: what changed before what could not be measured."""
    found = [
        case("phase/a/b/x", Outcome.NEW),
        case("phase/a/b/y", Outcome.INVALID, reason="busy; free the machine and run again"),
        case("phase/a/b/z", Outcome.IMPROVED),
    ]
    improved, invalid, new = steps(found)
    assert "got faster" in improved
    assert "free the machine" in invalid
    assert "nothing is stored" in new


@pytest.mark.parametrize("outcome", [Outcome.REGRESSED, Outcome.IMPROVED, Outcome.INCONCLUSIVE])
def test_a_run_that_was_not_written_is_in_no_command(outcome: Outcome) -> None:
    """The steps that need its file are left out."""
    found = (case("phase/a/b/decode", outcome, samples_ns=()),)
    run = EndedRun(judgements=found, run_path=None, report_path=None, origin=RunOrigin(arguments=ALONE))
    assert not [line for line in next_steps(run) if "approve" in line or "see why" in line]
