"""Kernels that grow with the decode step."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from perfsuite.records.opencl_commands import Commands
from perfsuite.trace.opencl.device_clock import AlignedTrace, align
from perfsuite.trace.opencl.engine_view import LEAST_STEPS, kernel_growth, step_totals

from ...synthetic_opencl import EPOCH_NS, command, trace

STEP_NS = 10_000_000

#: Time of one launch by kernel and step, ns.
Law = Callable[[int, int], int]


def steps(n: int) -> list[tuple[int, int]]:
    return [(EPOCH_NS + i * STEP_NS, EPOCH_NS + i * STEP_NS + STEP_NS // 2) for i in range(n)]


def launches(n_steps: int, law: Law) -> list[Commands]:
    found = []
    for step in range(n_steps):
        for each in range(2 * 3):
            at_ns = EPOCH_NS + step * STEP_NS + 300_000 * each
            name = each % 2 + 1
            times = [at_ns + 500, at_ns + 600, at_ns + 700, at_ns + 700 + law(name, step)]
            found.append(command(len(found), at_ns, times, name=name, **{"global": 32 * (step + 1)}))
    return found


def grown(n_steps: int, law: Law) -> AlignedTrace:
    return align(trace(launches(n_steps, law)))


def test_a_kernel_that_grows_is_reported_from_one_that_does_not() -> None:
    """Of one that adds 100 ns a launch and step the slope is that of its three launches; a constant one has none."""
    growing, constant = kernel_growth(grown(40, lambda name, step: 5000 + (100 * step if name == 2 else 0)), steps(40))
    assert (growing.name, growing.grows, constant.name, constant.grows) == ("beta", True, "alpha", False)
    assert (growing.slope_ns_per_step, growing.intercept_ns) == (pytest.approx(300), pytest.approx(15_000))
    assert growing.r_squared == pytest.approx(1.0)
    assert growing.growth_ratio == pytest.approx((15_000 + 39 * 300) / 15_000)
    assert (constant.slope_ns_per_step, constant.r_squared) == (0.0, None)
    assert constant.step_totals_ns == (15_000,) * 40


def test_noise_alone_does_not_grow() -> None:
    """Of 40 constant kernels with 5 % of noise hardly any is stated to grow, and the interval holds the true slope."""
    chance = random.Random(4)
    false = 0
    for _ in range(20):
        found = kernel_growth(grown(32, lambda name, step: round(chance.gauss(50_000, 2500))), steps(32))
        false += sum(each.grows for each in found)
    assert false <= 2


def test_a_slope_within_noise_is_found_and_lies_in_its_interval() -> None:
    chance = random.Random(5)
    found = kernel_growth(
        grown(64, lambda name, step: round(chance.gauss(50_000, 1000)) + (100 * step if name == 2 else 0)), steps(64)
    )
    beta = next(each for each in found if each.name == "beta")
    assert beta.grows
    assert beta.lower_ns_per_step < 300 < beta.upper_ns_per_step
    assert beta.r_squared is not None
    assert 0.5 < beta.r_squared < 1
    found = kernel_growth(
        grown(40, lambda name, step: 5000 + 100 * step * (name == 2) + (100_000 if step in (3, 38, 39) else 0)),
        steps(40),
    )
    verdicts = {each.name: (each.grows, round(each.slope_ns_per_step)) for each in found}
    assert (verdicts["alpha"], verdicts["beta"]) == ((False, 0), (True, 300))


def test_a_launch_belongs_to_the_step_in_which_it_was_enqueued() -> None:
    """What is enqueued between two steps belongs to none, even where it is executed within one."""
    inside = EPOCH_NS + STEP_NS
    between = inside - 1000
    commands = [
        command(0, inside, [inside + 1, inside + 2, inside + 3, inside + 103]),
        command(1, between, [between + 1, between + 2, inside + 200, inside + 300]),
        command(2, inside + STEP_NS // 2, [inside + STEP_NS // 2 + each for each in (1, 2, 3, 4)]),
    ]
    names, totals_ns, is_known = step_totals(align(trace(commands)), steps(3))
    assert (names, totals_ns.tolist()) == ((1,), [[0, 100, 0]])
    assert is_known.all()


def test_a_step_with_an_anomaly_is_not_known() -> None:
    commands = launches(20, lambda name, step: 5000 + 100 * step)
    commands[6 * 4]["end_ns"] = commands[6 * 4]["start_ns"] - 1
    alpha = next(each for each in kernel_growth(align(trace(commands)), steps(20)) if each.name == "alpha")
    assert [step for step, total in enumerate(alpha.step_totals_ns) if total is None] == [4]
    assert alpha.slope_ns_per_step == pytest.approx(300)
    aligned = grown(LEAST_STEPS, lambda name, step: 1000 + step)
    assert (kernel_growth(aligned, steps(LEAST_STEPS - 1)), len(kernel_growth(aligned, steps(LEAST_STEPS)))) == ((), 2)
    assert kernel_growth(aligned, []) == ()
