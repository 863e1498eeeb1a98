"""The cases of a made-up run."""

from __future__ import annotations

from statistics import median

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.testing.run_cases import (
    CHOSEN_CASES,
    PHASES_NS,
    ROLES,
    Circumstances,
    PlannedCase,
    operator_id,
    phase_id,
    planned_cases,
    planned_outcome,
    synthetic_judgement,
)

CASE = PlannedCase(case_id="kernel/add/count64/f32", kind="kernel", base_ns=100_000)
OPERATOR = PlannedCase(case_id=operator_id("prefill", "ffn_up"), kind="operator", base_ns=100_000)
USUAL = Circumstances(seed=1, change_ratio=1.0, has_pairs=True)


def test_all_outcomes_but_one_are_planned_within_a_round() -> None:
    """Among 43 cases is every outcome except REGRESSED, which is planned by itself."""
    assert {planned_outcome(place) for place in range(43)} == set(Outcome) - {Outcome.REGRESSED}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_figures_fit_the_outcome(outcome: Outcome) -> None:
    """The measured time is the samples' median, and breaks the bound that the outcome names, and no other."""
    made = synthetic_judgement(OPERATOR, outcome, USUAL)
    assert made.outcome is outcome
    assert made.measured_ns is not None
    assert made.floor_ns is not None
    assert made.limit_ns is not None
    assert made.measured_ns == round(median(made.samples_ns))
    assert (made.measured_ns < made.floor_ns) is (outcome is Outcome.IMPOSSIBLE)
    assert (made.measured_ns > made.limit_ns) is (outcome is Outcome.SLOW)


@pytest.mark.parametrize(
    ("outcome", "least", "most"),
    [(Outcome.REGRESSED, 1.05, 1.11), (Outcome.IMPROVED, 0.77, 0.95), (Outcome.PASS, 0.97, 1.03)],
)
def test_a_change_fits_its_outcome(outcome: Outcome, least: float, most: float) -> None:
    """What regressed is slower than its baseline, what improved is faster, and the rest about as fast."""
    made = synthetic_judgement(OPERATOR, outcome, USUAL)
    assert made.change_ratio is not None
    assert made.lower_ratio is not None
    assert made.upper_ratio is not None
    assert least < made.lower_ratio < made.change_ratio < made.upper_ratio < most


def test_pairs_cover_the_engine_alone() -> None:
    """A kernel of our own is compared with its stored baseline, which gives bounds and no pairs.

    Where there is no time there are no samples, whatever is planned.
    """
    own = synthetic_judgement(CASE, Outcome.PASS, USUAL)
    assert own.baseline_ns is not None
    assert own.lower_ratio is not None
    assert (own.n_pairs, own.baseline_samples_ns) == (None, ())
    assert synthetic_judgement(OPERATOR, Outcome.PASS, USUAL).n_pairs == 10
    untimed = synthetic_judgement(PlannedCase(case_id="trace/a", kind="trace", base_ns=None), Outcome.SLOW, USUAL)
    assert (untimed.outcome, untimed.samples_ns, untimed.measured_ns) == (Outcome.PASS, (), None)
    assert {case_id.split("/")[0] for case_id in CHOSEN_CASES} == {"phase", "operator"}


def test_a_change_between_runs_moves_both_sides_of_the_chosen() -> None:
    """A chosen case takes longer by the ratio, and its verdict does not show it; others stay as they are."""
    chosen = PlannedCase(case_id=phase_id("prefill"), kind="phase", base_ns=1_000_000)
    later = Circumstances(seed=1, change_ratio=1.05, has_pairs=True)
    before, after = (synthetic_judgement(chosen, Outcome.PASS, each) for each in (USUAL, later))
    assert before.measured_ns is not None
    assert after.measured_ns is not None
    assert after.measured_ns / before.measured_ns == pytest.approx(1.05, rel=1e-4)
    assert after.change_ratio == pytest.approx(before.change_ratio, rel=1e-4)
    assert synthetic_judgement(OPERATOR, Outcome.PASS, USUAL) == synthetic_judgement(OPERATOR, Outcome.PASS, later)


def test_every_kind_is_there() -> None:
    """The list has any length and no id twice, begins as a shorter one, and 500 cases are of every kind."""
    cases = planned_cases(1000, ())
    assert len({case.case_id for case in cases}) == 1000
    for n_cases in (0, 1, 7, 60):
        assert planned_cases(n_cases, ()) == cases[:n_cases]
    own = {"phase", "operator", "kernel", "engine_kernel", "roofline", "fidelity", "overhead", "trace"}
    assert {case.kind for case in cases[:500]} == {*own, "tokenizer"}


def test_operators_of_a_phase_add_up_to_it() -> None:
    """The operators of a phase, the rest among them, take what the phase takes."""
    times = {case.case_id: case.base_ns for case in planned_cases(60, ())}
    for phase in ("prefill", "decode"):
        roles = [*(each.role for each in ROLES), "rest"]
        assert sum(times[operator_id(phase, role)] or 0 for role in roles) == times[phase_id(phase)] == PHASES_NS[phase]


def test_names_are_a_third_partys_cases() -> None:
    """Given names follow the phases, and the first two are kinds as well, up to the first slash."""
    cases = planned_cases(11, ("a", "</b>"))[7:]
    assert [case.case_id for case in cases] == ["tokenizer/a", "tokenizer/</b>", "a/encode", "</b>/encode"]
    assert [case.kind for case in cases] == ["tokenizer", "tokenizer", "a", "<"]
