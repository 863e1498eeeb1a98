"""Groups of what could not be judged."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.page.undecided import UndecidedGroup, undecided_groups
from perfsuite.report.reproduce import run_command
from perfsuite.testing.run_files import synthetic_run

STORED_RUN = synthetic_run(n_cases=200, against=None)


def groups_of(*judgements: Judgement) -> tuple[UndecidedGroup, ...]:
    """The groups of a run of these cases."""
    return undecided_groups(replace(STORED_RUN, judgements=judgements))


def told(outcome: Outcome, *reasons: str) -> list[Judgement]:
    """Cases of an outcome, one for each reason."""
    return [told_judgement(f"trace/x/{number}", "trace", outcome, reason) for number, reason in enumerate(reasons)]


def test_every_undecided_case_is_in_one_group() -> None:
    """In the order of their outcomes; reasons are one where only their figures differ, the first then is an example."""
    found = undecided_groups(STORED_RUN)
    order = [Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.INCONCLUSIVE, Outcome.NEW]
    assert [order.index(group.outcome) for group in found] == sorted(order.index(group.outcome) for group in found)
    n_cases = sum(len(group.judgements) for group in found)
    assert n_cases == sum(each.outcome in order for each in STORED_RUN.judgements)
    (group,) = groups_of(
        *told(Outcome.INVALID, "waited 21 % of the time (limit 2 %)", "waited 7.5 % of the time (limit 2 %)")
    )
    assert (len(group.judgements), group.is_example) == (2, True)
    apart = groups_of(*told(Outcome.INVALID, "threads 4, now 2", "governor x, now y", "governor x, now y"))
    assert [(len(group.judgements), group.is_example) for group in apart] == [(2, False), (1, False)]


def test_advice_fits_the_case() -> None:
    """Pairs need more time, findings without samples a longer run, what no case claims an expectation."""
    paired = next(each for each in synthetic_run(n_cases=60).judgements if each.outcome is Outcome.INCONCLUSIVE)
    assert "--perf-budget" in groups_of(replace(paired, n_pairs=8))[0].advice
    assert "--scenario" in groups_of(*told(Outcome.INCONCLUSIVE, "too short"))[0].advice
    assert "expectation" in groups_of(*told(Outcome.INVALID, "recorded, and no case claims it: x"))[0].advice
    assert "come to rest" in groups_of(*told(Outcome.INVALID, "threads waited 73 % of the time"))[0].advice


def test_groups_have_the_command_of_the_run() -> None:
    """New cases the one that records, invalid ones the run's own; in pairs, or where it is not known, there is none."""
    new = told(Outcome.NEW, "no baseline yet")
    (group,) = groups_of(*new)
    assert group.command is not None
    assert "--baseline=record" in group.command
    for other in (replace(STORED_RUN, against="x"), replace(STORED_RUN, origin=NO_ORIGIN)):
        assert undecided_groups(replace(other, judgements=tuple(new)))[0].command is None
    invalid = told(Outcome.INVALID, "threads waited 73 % of the time")
    assert groups_of(*invalid)[0].command == run_command(STORED_RUN.origin)
    bare = replace(STORED_RUN, origin=NO_ORIGIN, judgements=tuple(invalid))
    assert undecided_groups(bare)[0].command is None
