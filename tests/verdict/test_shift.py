"""What everything has in common, told from what some operators did."""

from __future__ import annotations

import pytest

from perfsuite.records.judgement import Judgement
from perfsuite.verdict.parts import parent_id
from perfsuite.verdict.shift import uniform_shift

from .test_attribution import moved, operator, phase

#: Old times of the operators of a phase: few long ones, many short ones.
OLD_NS = (40_000, 30_000, 20_000, *(1000,) * 10)


def run(*ratios: float, phase_ratio: float | None = None) -> list[Judgement]:
    """Both phases, whose operators moved by these ratios; the last one is that of all that follow."""
    filled = (*ratios, *ratios[-1:] * (len(OLD_NS) - len(ratios)))
    cases = []
    for name, scale in (("prefill", 100), ("decode", 1)):
        old = [old_ns * scale for old_ns in OLD_NS]
        new = [round(old_ns * ratio) for old_ns, ratio in zip(old, filled, strict=True)]
        whole = round(sum(old) * phase_ratio) if phase_ratio else sum(new)
        cases.append(phase(name, sum(old), whole))
        cases += [operator(f"op{at}", *times, at=name) for at, times in enumerate(zip(old, new, strict=True))]
    return cases


@pytest.mark.parametrize("ratio", [0.6, 0.88, 1.12, 1.5, 3.0])
def test_a_run_in_which_everything_moved_alike_is_one_shift(ratio: float) -> None:
    """Slower or faster, the common ratio is found, with the number of cases that show it."""
    found = uniform_shift(run(ratio), margin_ratio=0.05)
    assert found is not None
    assert found.ratio == pytest.approx(ratio, rel=1e-3)
    assert found.n_cases == 2 * (len(OLD_NS) + 1)


def test_noise_of_short_operators_does_not_hide_a_shift() -> None:
    """What is short may scatter, as long as most of the time moved alike."""
    found = uniform_shift(run(1.12, 1.13, 1.11, 1.3, 0.98, 1.2, 1.09, 1.16, 1.06, 1.12), margin_ratio=0.05)
    assert found is not None
    assert found.n_cases < 2 * (len(OLD_NS) + 1)


@pytest.mark.parametrize(
    "ratios",
    [
        pytest.param((3.0, 1.0), id="one"),
        pytest.param((1.3, 1.5, 1.7, 1.2), id="each by its own"),
        pytest.param((1.12, 1.12, 1.12, 1.0), id="the long ones only"),
    ],
)
def test_a_change_of_some_operators_is_no_shift(ratios: tuple[float, ...]) -> None:
    """One operator, operators that differ, and the long ones of one kind are changes of operators."""
    assert uniform_shift(run(*ratios), margin_ratio=0.05) is None


def test_a_shift_within_the_margin_is_none() -> None:
    """What passes is not reported."""
    cases = run(1.04)
    assert uniform_shift(cases, margin_ratio=0.05) is None
    assert uniform_shift(cases, margin_ratio=0.02) is not None


def test_phases_that_moved_otherwise_are_no_shift() -> None:
    """Operators that all moved are not everything while their phases stay."""
    assert uniform_shift(run(1.2, phase_ratio=1.05), margin_ratio=0.05) is None


def test_all_phases_and_enough_operators_are_needed() -> None:
    """One phase, or four operators, are not everything."""
    cases = run(1.2)
    assert uniform_shift([each for each in cases if "decode" in each.case_id], margin_ratio=0.05) is None
    few = [each for each in cases if each.kind == "phase" or each.case_id.endswith(("op1", "op2"))]
    assert uniform_shift(few, margin_ratio=0.05) is None


def test_kernels_have_no_say() -> None:
    """Cases that no phase holds do not change what is common to phases and operators."""
    kernels = [moved(f"kernel/add/n{at}/f32", 10**9, 10**9) for at in range(20)]
    assert uniform_shift([*run(1.2), *kernels], margin_ratio=0.05) == uniform_shift(run(1.2), margin_ratio=0.05)


@pytest.mark.parametrize(
    ("case_id", "parent"),
    [
        ("operator/a/b/decode/ffn_up", "phase/a/b/decode"),
        ("operator/dir/a/b/prefill/rest", "phase/dir/a/b/prefill"),
        ("operator/a/b/prefill/embd", None),
        ("phase/a/b/decode", None),
        ("kernel/add/n8/f32", None),
        ("operator/x", None),
        ("mine", None),
    ],
)
def test_a_case_knows_what_holds_it(case_id: str, parent: str | None) -> None:
    """An operator is a part of its phase; what else there is stands for itself."""
    assert parent_id(case_id) == parent
