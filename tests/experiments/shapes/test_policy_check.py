"""Checks of tables on simulated devices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial

import pytest

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_check import (
    Holding,
    PromiseCheck,
    check_table,
    holding_of,
    refuse_other_device,
)
from perfsuite.experiments.shapes.policy_question import PolicyQuestion
from perfsuite.experiments.shapes.policy_record import Gain, MeasuredSubject
from perfsuite.experiments.shapes.policy_rounds import RoundDesign
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import Subject
from tests.synthetic_shape_policy import (
    CPU,
    FIBONACCI,
    OPENCL,
    backend_meters,
    backend_question,
    crossing_at,
    gain,
    measured,
    policy_row,
    policy_table,
    shape_policy,
    tiling_meters,
    tiling_question,
)

#: Checks with as much effort as the command does.
checked = partial(check_table, design=RoundDesign(n_processes=6))


def holdings(checks: Iterable[PromiseCheck]) -> list[str]:
    return [each.holding.value for each in checks]


def test_what_was_measured_holds() -> None:
    meters = backend_meters(crossing_at(55))
    checks = checked(measured(backend_question(), meters), meters)
    assert {each.claim.over for each in checks} == {CPU, OPENCL}
    assert not {Holding.FAILS} & {each.holding for each in checks}
    assert Holding.HOLDS in {each.holding for each in checks}
    sizes = {size for each in checks for size in each.claim.drawn.sizes}
    assert max(sizes & set(FIBONACCI)) <= 8
    assert len(sizes - set(FIBONACCI)) >= 10


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("question", "meters", "n_tables", "most_failed", "least_held"),
    [
        (backend_question(), partial(backend_meters, crossing_at(70)), 15, 1, 0.0),
        (tiling_question(), tiling_meters, 8, 1, 0.8),
    ],
    ids=["backends", "saws of tiles"],
)
def test_honest_tables_seldom_fail(
    question: PolicyQuestion,
    meters: Callable[..., dict[Subject, SimulatedMeters]],
    n_tables: int,
    most_failed: int,
    least_held: float,
) -> None:
    """Of many tables of simulated devices one or two at most have a promise that fails, and most promises hold."""
    found = []
    for seed in range(n_tables):
        device = meters(seed=seed)
        found.append(holdings(checked(measured(question, device, seed=seed), device, seed=seed)))
    assert sum("fails" in each for each in found) <= most_failed
    held = [holding == "holds" for each in found for holding in each]
    assert sum(held) >= least_held * len(held)


def test_saws_do_not_hide_a_lie() -> None:
    """Promises that are half as large again as the gains of the same quiet device fail, each of them in most tables."""

    def larger(found: Gain) -> Gain:
        return Gain(**{name: 1.5 * ratio for name, ratio in asdict(found).items()})

    found: list[str] = []
    for seed in range(5):
        meters = tiling_meters(seed=seed)
        table = measured(tiling_question(), meters, seed=seed)
        rows = tuple(
            replace(row, gain_over_default=larger(row.gain_over_default), gain_over_worst=larger(row.gain_over_worst))
            for row in table.rows
        )
        found += holdings(checked(replace(table, rows=rows), meters, seed=seed))
    assert found.count("fails") >= 0.8 * len(found)


def test_a_promise_that_is_not_kept_fails() -> None:
    table = policy_table(rows=(policy_row(1, 512, OPENCL, gain_over_default=gain(1.5)),))
    (check,) = checked(table, backend_meters(crossing_at(100_000)))
    assert (check.holding, check.reason, check.claim.over) == (Holding.FAILS, "the choice is slower", CPU)
    meters = backend_meters(crossing_at(100))
    meters[Subject.GGML_OPENCL].wrong = lambda case: case.shape.of("n") > 64
    of_cpu, of_opencl = checked(policy_table(), meters)
    assert of_cpu.holding is not Holding.FAILS
    assert (of_opencl.holding, of_opencl.measured) == (Holding.FAILS, None)
    assert "computes something else" in of_opencl.reason


def test_an_alternative_that_cannot_be_measured_leaves_it_undecided() -> None:
    meters = backend_meters(crossing_at(100))
    meters[Subject.GGML_OPENCL].problem = lambda case: "gone"
    (check,) = checked(policy_table(rows=(policy_row(1, 512, CPU),)), meters)
    assert check.holding is Holding.UNDECIDED
    assert re.match("nothing to hold it against: .*gone", check.reason)


@pytest.mark.parametrize(
    ("promised", "measured", "expected"),
    [
        (gain(1.5), gain(1.5), Holding.HOLDS),
        (gain(1.5), gain(1.4), Holding.HOLDS),
        (gain(1.5), gain(3.0), Holding.HOLDS),
        (gain(1.5), gain(1.15), Holding.FAILS),
        (gain(1.5), gain(0.8), Holding.FAILS),
        (gain(1.5), gain(1.2, spread=1.3), Holding.UNDECIDED),
        (gain(1.0), gain(1.0), Holding.HOLDS),
        (gain(1.5), gain(1.27, spread=1.05), Holding.FAILS),
        (gain(1.0), gain(0.8), Holding.FAILS),
        (gain(1.0), gain(0.95, spread=1.01), Holding.UNDECIDED),
        (gain(0.98, spread=1.01), gain(0.98, spread=1.01), Holding.HOLDS),
        (gain(0.98, spread=1.01), gain(0.9, spread=1.01), Holding.FAILS),
    ],
)
def test_a_promise_fails_where_its_difference_is_sure(promised: Gain, measured: Gain, expected: Holding) -> None:
    assert holding_of(promised, measured)[0] is expected


def test_another_device_is_refused_by_the_field_that_differs() -> None:
    meters = {each: SimulatedMeters() for each in Subject}
    refuse_other_device(shape_policy(), meters)
    elsewhere = MeasuredSubject(subject=Subject.TILED, device="card", fingerprint={"device": "card", "driver": "1"})
    policy = shape_policy()
    with pytest.raises(PolicyError, match="tiled: device is 'simulated device' here, and was 'card' where"):
        refuse_other_device(replace(policy, subjects=(elsewhere, *policy.subjects[1:])), meters)
