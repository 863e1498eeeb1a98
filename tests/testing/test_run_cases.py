"""The cases of a made-up run."""

from __future__ import annotations

from perfsuite.testing.run_cases import PHASES_NS, ROLES, operator_id, phase_id, planned_cases


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
