"""What a phase lost, by its operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from perfsuite.records.outcome import Judgement, Outcome, PhaseAttribution, UniformShift
from perfsuite.verdict.attribution import (
    MAX_CARRIERS,
    attribute,
    carrier_of,
    parent_id,
    phase_attributions,
    uniform_shift,
)

from ..synthetic_judgements import case

PREFIX = "a-q8_0/siso"


def moved(case_id: str, old_ns: int, new_ns: int, outcome: Outcome | None = None) -> Judgement:
    """Judge a case of some old and new time; by a margin of 5 % where no outcome is given."""
    ratio = new_ns / old_ns
    known = Outcome.REGRESSED if ratio > 1.05 else Outcome.IMPROVED if ratio < 1 / 1.05 else Outcome.PASS
    figures = {"floor_ns": None, "expected_ns": None, "measured_ns": new_ns, "baseline_ns": old_ns}
    return case(case_id, outcome or known, samples_ns=(new_ns,) * 3, change_ratio=ratio, **figures)


def phase(name: str, old_ns: int, new_ns: int, outcome: Outcome | None = None) -> Judgement:
    return moved(f"phase/{PREFIX}/{name}", old_ns, new_ns, outcome)


def operator(role: str, old_ns: int, new_ns: int, outcome: Outcome | None = None, at: str = "decode") -> Judgement:
    return moved(f"operator/{PREFIX}/{at}/{role}", old_ns, new_ns, outcome)


def only(*cases: Judgement) -> PhaseAttribution:
    (found,) = phase_attributions(cases)
    return found


def test_a_phase_names_what_carries_it() -> None:
    """The largest first, in either direction, and what they leave is unexplained."""
    parts = operator("attn_out", 100, 150), operator("ffn_swiglu", 100, 480), operator("ffn_gate", 500, 520)
    found = only(phase("decode", 1000, 1500), *parts)
    assert (found.case_id, found.lost_ns, found.unexplained_ns) == (f"phase/{PREFIX}/decode", 500, 70)
    assert [(each.role, each.lost_ns, each.share_ratio) for each in found.carriers] == [
        ("ffn_swiglu", 380, 0.76),
        ("attn_out", 50, 0.1),
    ]
    assert all(each.is_significant for each in found.carriers)
    parts = operator("a", 300, 200), operator("b", 400, 50), operator("c", 100, 200)
    found = only(phase("decode", 1000, 500), *parts)
    assert (found.lost_ns, found.unexplained_ns) == (-500, -50)
    assert [(each.role, each.lost_ns, each.share_ratio) for each in found.carriers] == [
        ("b", -350, 0.7),
        ("a", -100, 0.2),
    ]


def alone(role: str, old_ns: int, new_ns: int) -> Judgement:
    sides = {"samples_ns": (new_ns,) * bool(new_ns), "baseline_samples_ns": (old_ns,) * bool(old_ns)}
    times = {"measured_ns": new_ns or None, "baseline_ns": old_ns or None, "change_ratio": None, "n_pairs": 1}
    return case(f"operator/{PREFIX}/decode/{role}", Outcome.INCOMPARABLE, **sides, **times)


def test_what_one_side_alone_has_carries_all_of_its_time() -> None:
    """Whichever way it counts; others carry what is left, and nothing of it is unexplained or a shift of everything."""
    cases = [phase("decode", 1000, 1500), alone("rot", 0, 300), alone("fused", 100, 0), operator("up", 500, 780)]
    found = only(*cases)
    assert [(each.name, each.lost_ns) for each in found.carriers] == [
        ("new: rot", 300),
        ("gone: fused", -100),
        ("up", 280),
    ]
    assert (found.unexplained_ns, found.carriers[0].share_ratio) == (20, 0.6)
    unsure = operator("up", 500, 780, Outcome.INCONCLUSIVE)
    found = only(*cases[:3], unsure)
    assert [each.is_significant for each in found.carriers] == [True, True, False]
    found = only(phase("decode", 1000, 1300), alone("rot", 0, 300), operator("up", 500, 501))
    assert ([each.role for each in found.carriers], found.unexplained_ns) == (["rot"], 0)
    assert carrier_of(cases) == "rot"
    assert shift([*run(1.12), alone("rot", 0, 300)]) == shift(run(1.12))


@pytest.mark.parametrize(
    ("cases", "carriers"),
    [
        ([phase("decode", 1000, 1500), operator("rest", 100, 600)], ["rest"]),
        ([phase("decode", 1000, 1500), operator("embd", 10, 900), operator("ffn_up", 100, 500)], ["ffn_up"]),
        (
            [phase("decode", 1000, 1500), operator("up", 100, 900, at="prefill"), operator("up", 100, 500)],
            ["up"],
        ),
        *(
            ([phase("decode", 1000, 1500), operator("bad", 100, 900, outcome), operator("good", 100, 200)], ["good"])
            for outcome in (Outcome.INVALID, Outcome.IMPOSSIBLE, Outcome.INCOMPARABLE)
        ),
    ],
)
def test_what_is_part_of_a_phase_may_carry_it(cases: list[Judgement], carriers: list[str]) -> None:
    """The rest counts as a part; the gather of embeddings and another phase's operators do not.

    A measurement that cannot be trusted is not reckoned with.
    """
    found = only(*cases)
    assert [each.role for each in found.carriers] == carriers
    assert all(parent_id(each.case_id) == found.case_id for each in found.carriers)


def test_the_fewest_that_explain_a_loss_are_named() -> None:
    """Five sure ones at most; else the unsure ones that make up half; none where more would be needed."""
    found = only(phase("decode", 6000, 6600), *(operator(f"op{at}", 1000, 1100) for at in range(6)))
    assert (len(found.carriers), found.unexplained_ns) == (MAX_CARRIERS, 100)
    unsure = (operator(f"op{at}", 100, 100 + lost, Outcome.INCONCLUSIVE) for at, lost in enumerate((10, 40, 30, 10)))
    found = only(phase("decode", 1000, 1100), *unsure)
    assert [(each.role, each.is_significant) for each in found.carriers] == [("op1", False), ("op2", False)]
    assert found.unexplained_ns == 30
    small = (operator(f"op{at}", 100, 104, Outcome.INCONCLUSIVE) for at in range(20))
    found = only(phase("decode", 2000, 2120), *small)
    assert (found.carriers, found.unexplained_ns) == ((), 120)


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.SLOW, Outcome.NEW, Outcome.INCONCLUSIVE, Outcome.INVALID])
def test_a_phase_that_did_not_change_is_not_attributed(outcome: Outcome) -> None:
    assert phase_attributions((phase("decode", 1000, 1500, outcome), operator("a", 100, 600))) == ()


def test_without_operators_there_is_no_tree() -> None:
    cases = (phase("decode", 1000, 1500), moved("kernel/gemv/n8/f32", 10, 20), moved("mine", 10, 20))
    assert phase_attributions(cases) == ()
    cases = [phase(at, 5000, 6000) for at in ("prefill", "decode")]
    cases += [operator(f"op{n}", 1000, 1200, at=at) for n in range(5) for at in ("prefill", "decode")]
    found = attribute(cases, margin_ratio=0.05)
    assert len(found.phases) == 2
    assert found.uniform_shift is not None


def test_the_carrier_of_a_run_lost_the_most_of_its_phase() -> None:
    """A prefill is longer than a decode step: what counts is the share of the phase, and only sure losses do."""
    cases = (
        operator("long", 10_000, 10_600, at="prefill"),
        operator("other", 90_000, 90_000, at="prefill"),
        operator("short", 100, 150, at="decode"),
        operator("unsure", 800, 2000, Outcome.INCONCLUSIVE, at="decode"),
    )
    assert carrier_of(cases) == "short"
    assert carrier_of(cases[1:2]) is None


def shift(cases: Sequence[Judgement]) -> UniformShift | None:
    return uniform_shift(cases, margin_ratio=0.05)


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


@pytest.mark.parametrize("ratio", [0.88, 1.12, 3.0])
def test_a_run_in_which_everything_moved_alike_is_one_shift(ratio: float) -> None:
    found = shift(run(ratio))
    assert found is not None
    assert (found.ratio, found.n_cases) == (pytest.approx(ratio, rel=1e-3), 2 * (len(OLD_NS) + 1))


def test_noise_of_short_operators_does_not_hide_a_shift() -> None:
    """What is short may scatter, as long as most of the time moved alike."""
    found = shift(run(1.12, 1.13, 1.11, 1.3, 0.98, 1.2, 1.09, 1.16, 1.06, 1.12))
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
    assert shift(run(*ratios)) is None


def test_what_does_not_move_everything_is_no_shift() -> None:
    """Less than the margin, phases that stay, one phase, few operators; kernels do not count."""
    cases = run(1.04)
    assert shift(cases) is None
    assert uniform_shift(cases, margin_ratio=0.02) is not None
    assert shift(run(1.2, phase_ratio=1.05)) is None
    cases = run(1.2)
    decode = [each for each in cases if "decode" in each.case_id]
    assert shift(decode) is None
    embed = [replace(each, case_id=each.case_id.replace("decode", "embed")) for each in decode]
    assert shift(embed) is not None
    few = [each for each in cases if each.kind == "phase" or each.case_id.endswith(("op1", "op2"))]
    assert shift(few) is None
    kernels = [moved(f"kernel/add/n{at}/f32", 10**9, 10**9) for at in range(20)]
    assert shift([*run(1.2), *kernels]) == shift(run(1.2))
