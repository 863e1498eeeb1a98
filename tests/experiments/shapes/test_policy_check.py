"""Checks of tables on simulated devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from perfsuite.errors import PolicyError, ShapeError
from perfsuite.experiments.shapes.policy import measure_policy
from perfsuite.experiments.shapes.policy_check import (
    Holding,
    PromiseCheck,
    check_table,
    holding_of,
    refuse_other_device,
)
from perfsuite.experiments.shapes.policy_record import Gain, MeasuredSubject
from perfsuite.testing.shape_meters import SimulatedMeters, padded_time_ns
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject
from tests.synthetic_shape_policy import (
    CPU,
    FIBONACCI,
    OPENCL,
    backend_meters,
    backend_question,
    crossing_at,
    gain,
    policy_row,
    policy_table,
    shape_policy,
    tiling_question,
)


def holdings(checks: Iterable[PromiseCheck]) -> list[str]:
    """The answers in their order."""
    return [each.holding.value for each in checks]


def test_what_was_measured_holds() -> None:
    """An honest table is confirmed, at sizes that it was not made from wherever there are others."""
    meters = backend_meters(crossing_at(55))
    checks = check_table(measure_policy(backend_question(), meters).table, meters)
    assert {each.promise.over for each in checks} == {CPU, OPENCL}
    assert not {Holding.FAILS} & {each.holding for each in checks}
    assert Holding.HOLDS in {each.holding for each in checks}
    sizes = {size for each in checks for size in each.promise.drawn.sizes}
    assert max(sizes & set(FIBONACCI)) <= 8
    assert len(sizes - set(FIBONACCI)) >= 10


def test_honest_tables_seldom_fail() -> None:
    """Of 30 tables of simulated devices no more than two have a promise that fails."""
    n_failed = 0
    for seed in range(30):
        meters = backend_meters(crossing_at(70), seed=seed)
        table = measure_policy(backend_question(), meters, seed=seed).table
        n_failed += "fails" in holdings(check_table(table, meters, seed=seed))
    assert n_failed <= 2


def tiling_meters(seed: int) -> dict[Subject, SimulatedMeters]:
    """A quiet device whose times go in steps of the tiles, so that gains are saws over the sizes."""

    def time_ns(case: ShapeCase) -> float:
        assert case.tiling is not None
        return padded_time_ns(case, launch_ns=2_000.0) * (1.0 + 2.0 / case.tiling.tile)

    return {Subject.TILED: SimulatedMeters(time_ns=time_ns, sigma=0.01, placement_sigma=0.005, seed=seed)}


def test_honest_tables_of_saws_seldom_fail() -> None:
    """Of 20 tables of a quiet device with tiles one at most has a promise that fails, and most promises hold."""
    n_failed, held = 0, []
    for seed in range(20):
        meters = tiling_meters(seed)
        table = measure_policy(tiling_question(), meters, seed=seed).table
        found = holdings(check_table(table, meters, seed=seed))
        n_failed += "fails" in found
        held += found
    assert n_failed <= 1
    assert held.count("holds") >= 0.8 * len(held)


def test_saws_do_not_hide_a_lie() -> None:
    """Promises that are half as large again as the gains of the same quiet device fail, each of them in most tables."""
    n_failed = n_promises = 0
    for seed in range(5):
        meters = tiling_meters(seed)
        table = measure_policy(tiling_question(), meters, seed=seed).table
        rows = tuple(
            replace(
                row,
                gain_over_default=_times(row.gain_over_default, 1.5),
                gain_over_worst=_times(row.gain_over_worst, 1.5),
            )
            for row in table.rows
        )
        found = holdings(check_table(replace(table, rows=rows), meters, seed=seed))
        n_failed += found.count("fails")
        n_promises += len(found)
    assert n_failed >= 0.8 * n_promises


def _times(found: Gain, factor: float) -> Gain:
    return Gain(
        ratio=factor * found.ratio, lower_ratio=factor * found.lower_ratio, upper_ratio=factor * found.upper_ratio
    )


def test_a_table_that_names_the_loser_fails() -> None:
    """Where the choice is the slower side, the whole interval lies below 1."""
    table = policy_table(rows=(policy_row(1, 512, OPENCL, gain_over_default=gain(1.5)),))
    (check,) = check_table(table, backend_meters(crossing_at(100_000)))
    assert (check.holding, check.reason) == (Holding.FAILS, "the choice is slower")
    assert check.promise.over == CPU


def test_a_table_that_promises_too_much_fails() -> None:
    """The right choice with ten times the gain that there is does not hold."""
    meters = backend_meters(crossing_at(5000))
    table = measure_policy(backend_question(), meters).table
    (row,) = table.rows
    lie = replace(table, rows=(replace(row, gain_over_worst=gain(10.0 * row.gain_over_worst.ratio)),))
    (check,) = check_table(lie, meters)
    assert (check.holding, check.reason) == (Holding.FAILS, "the gain is smaller than promised")
    assert check.measured is not None
    assert check.measured.ratio < check.promise.promised.ratio / 5.0


def test_a_choice_that_computes_something_else_fails() -> None:
    """A sound time of a wrong output is worth nothing, and the shape is named."""
    meters = backend_meters(crossing_at(100))
    meters[Subject.GGML_OPENCL].wrong = lambda case: case.shape.of("n") > 64
    of_cpu, of_opencl = check_table(policy_table(), meters)
    assert of_cpu.holding is not Holding.FAILS
    assert of_opencl.holding is Holding.FAILS
    assert of_opencl.measured is None
    assert "computes something else" in of_opencl.reason


def test_an_alternative_that_cannot_be_measured_leaves_it_undecided() -> None:
    """There is nothing to hold the choice against."""
    meters = backend_meters(crossing_at(100))
    meters[Subject.GGML_OPENCL].problem = lambda case: "gone"
    (check,) = check_table(policy_table(rows=(policy_row(1, 512, CPU),)), meters)
    assert check.holding is Holding.UNDECIDED
    assert check.reason.startswith("nothing to hold it against: ")
    assert "gone" in check.reason


def test_a_row_of_measured_sizes_only_is_checked_there_and_says_so() -> None:
    """A range that holds nothing else is measured anew where it was fitted."""
    table = policy_table(measured_sizes=(1, 2, 3), rows=(policy_row(1, 3, CPU),))
    (check,) = check_table(table, backend_meters(crossing_at(5000)))
    assert check.promise.drawn.sizes == check.promise.drawn.fitted_sizes == (1, 2, 3)


def test_a_row_between_the_best_and_the_worst_has_two_promises() -> None:
    """A tiling that is neither is held against both."""
    choices = tiling_question().choices
    table = replace(
        shape_policy().tables[0],
        default=choices[0],
        worst=choices[1],
        rows=(policy_row(1, 512, choices[2], gain_over_default=gain(1.2)),),
    )
    checks = check_table(table, {Subject.TILED: SimulatedMeters()})
    assert [each.promise.over for each in checks] == [choices[0], choices[1]]
    assert [each.promise.promised.ratio for each in checks] == [1.2, 2.0]


def test_one_choice_has_nothing_to_check() -> None:
    """Neither is anything measured."""
    meters = backend_meters(crossing_at(100))
    assert check_table(policy_table(worst=CPU, rows=(policy_row(1, 512, CPU),)), meters) == ()
    assert sum(each.n_fresh for each in meters.values()) == 0


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
    """Less than promised for sure fails; no gain for sure where one was promised or left open is undecided."""
    assert holding_of(promised, measured)[0] is expected


def test_a_table_about_nothing_is_refused() -> None:
    """Before anything is started."""
    with pytest.raises(ShapeError, match="type 'f64'"):
        check_table(policy_table(type="f64"), {})


def test_another_device_is_refused_by_the_field_that_differs() -> None:
    """A policy is about the device that it was measured on."""
    meters = {each: SimulatedMeters() for each in Subject}
    refuse_other_device(shape_policy(), meters)
    elsewhere = MeasuredSubject(subject="tiled", device="card", fingerprint={"device": "card", "driver": "1"})
    policy = shape_policy()
    with pytest.raises(PolicyError, match="tiled: device is 'simulated device' here, and was 'card' where"):
        refuse_other_device(replace(policy, subjects=(elsewhere, *policy.subjects[1:])), meters)
