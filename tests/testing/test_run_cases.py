"""The cases of a made-up run."""

from __future__ import annotations

from perfsuite.testing.run_cases import PHASES_NS, ROLES, operator_id, phase_id, planned_cases


def test_there_are_as_many_as_wanted_and_each_once() -> None:
    """The list has any length, and no id twice."""
    for n_cases in (0, 1, 7, 60, 1000):
        cases = planned_cases(n_cases, ())
        assert len({case.case_id for case in cases}) == len(cases) == n_cases


def test_a_longer_list_begins_as_a_shorter_one() -> None:
    """What a case is called and takes does not depend on how many there are."""
    assert planned_cases(500, ())[:100] == planned_cases(100, ())


def test_every_kind_is_there() -> None:
    """500 cases are of every kind of the suite and of a third party's."""
    kinds = {case.kind for case in planned_cases(500, ())}
    own = {"phase", "operator", "kernel", "engine_kernel", "roofline", "fidelity", "overhead", "trace"}
    assert kinds == {*own, "tokenizer"}


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
