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
    return [shlex.split(command) for command in steps(found, *arguments).values()]


def paired(outcome: Outcome, **changes: object) -> Judgement:
    return case("phase/a/b/decode", outcome, n_pairs=20, **changes)


REPORT = "r/report.html"
RECORD = "pytest --device=host --baseline=record"
CHANGED, FASTER = "WHAT CHANGED, AND WHY IT IS RIGHT", "WHAT MADE IT FASTER"
APPROVE = f"perfsuite baseline approve r/run.json --reason '{CHANGED}'"
AGAIN = "pytest --device=host -k '[phase/a/b/decode]'"
MOVED = "pytest --device=host '--baseline-dir=b c'"
PAIRS_AGAIN = f"pytest {' '.join(IN_PAIRS)}"
DECODE = "phase/a/b/decode"
COUNT = "counted/a/b/decode/reads"
COUNTED = ("--device=counted",)


@pytest.mark.parametrize(
    ("found", "arguments", "told"),
    [
        ([case(DECODE)], (), []),
        ([case(DECODE, Outcome.REGRESSED)], (), [f"{AGAIN} --against=FOLDER", REPORT, APPROVE]),
        (
            [case(DECODE, Outcome.REGRESSED)],
            (*ALONE, "--baseline-dir=b c"),
            [f"{MOVED} -k '[phase/a/b/decode]' --against=FOLDER", REPORT, f"{APPROVE} --baseline-dir 'b c'"],
        ),
        ([paired(Outcome.REGRESSED)], IN_PAIRS, [f"{PAIRS_AGAIN} -k '[phase/a/b/decode]'", REPORT]),
        ([case(COUNT, Outcome.REGRESSED)], COUNTED, [REPORT, "pytest --device=counted --baseline=record"]),
        ([case(DECODE, Outcome.IMPROVED)], (), [APPROVE.replace(CHANGED, FASTER)]),
        ([paired(Outcome.IMPROVED)], IN_PAIRS, [RECORD]),
        ([case(DECODE, Outcome.NEW)], (), [RECORD]),
        ([case(DECODE, Outcome.INCOMPARABLE, reason="threads 4")], (), [RECORD]),
        (
            [case(DECODE, Outcome.INCONCLUSIVE)],
            (*ALONE, "--perf-replicates=7"),
            [f"{AGAIN} --perf-replicates=14"],
        ),
        ([case("trace/balance/x", Outcome.INCONCLUSIVE, samples_ns=())], (), [REPORT]),
        *(
            (
                [paired(Outcome.INCONCLUSIVE, n_more_pairs=20)],
                (*IN_PAIRS, *given),
                [f"{PAIRS_AGAIN} --perf-budget={longer}"],
            )
            for given, longer in (
                ((), "180s"),
                (("--perf-budget=2m",), "240s"),
            )
        ),
    ],
)
def test_what_is_found_is_answered_by_commands(
    found: list[Judgement], arguments: tuple[str, ...], told: list[str]
) -> None:
    """Counts need no pairs; longer pairs start from what was given."""
    assert list(steps(found, *arguments).values()) == told


@pytest.mark.parametrize(
    ("found", "arguments", "why"),
    [
        (
            [case(DECODE, Outcome.INCOMPARABLE, reason="the baseline was recorded with threads 4")],
            (),
            "measure as the baseline was, or keep this as a reference of its own "
            "(the baseline was recorded with threads 4)",
        ),
        ([paired(Outcome.SUSPECT, n_more_pairs=20)], IN_PAIRS, "let about 20 more pairs decide phase/a/b/decode"),
        (
            [paired(Outcome.INCONCLUSIVE, n_more_pairs=90), paired(Outcome.SUSPECT, n_more_pairs=20)],
            IN_PAIRS,
            "let about 20 more pairs decide phase/a/b/decode",
        ),
    ],
)
def test_a_step_says_why(found: list[Judgement], arguments: tuple[str, ...], why: str) -> None:
    """What is suspect sets the number of pairs alone: a second budget would leave the choice to the reader."""
    assert list(steps(found, *arguments)) == [why]


@pytest.mark.parametrize("outcome", [Outcome.SUSPECT, Outcome.INCONCLUSIVE])
def test_a_case_that_needs_thousands_of_pairs_sets_no_time_of_the_others(outcome: Outcome) -> None:
    found = [paired(outcome, n_more_pairs=each) for each in (10, 9000)]
    assert any("about 10 more pairs" in why for why in steps(found, *IN_PAIRS))


def test_what_was_slowed_on_purpose_is_no_reference() -> None:
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
