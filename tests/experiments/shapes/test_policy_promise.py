"""What a table promises, from given times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfsuite.experiments.shapes.policy_check import promises_of
from perfsuite.experiments.shapes.policy_promise import PromisePlan
from perfsuite.experiments.shapes.policy_record import NO_GAIN
from tests.synthetic_shape_policy import CPU, OPENCL, SIZES, backend_question, policy_row, policy_table

QUESTION = backend_question(sizes=SIZES)


def test_rows_promise_over_their_range_and_the_table_at_its_sizes() -> None:
    """A device that is twice as fast at the sizes of the grid, and half as fast between them, promises both."""
    plan = PromisePlan.of(policy_table(rows=(policy_row(1, 512, OPENCL),)), QUESTION, seed=0)
    times = {
        case: np.full(
            4, 0.0 if case.subject.value == CPU.subject else np.log(0.5 if case.shape.of("n") in SIZES else 2)
        )
        for case in plan.cases
    }
    table = plan.promising(times)
    n_fitted = len(plan.drawn[0].fitted_sizes)
    assert table.gain_over_default.ratio == pytest.approx(2.0)
    assert table.rows[0].gain_over_default.ratio == pytest.approx(2.0 ** ((2 * n_fitted - 10) / 10))
    assert table.rows[0].gain_over_worst == NO_GAIN


def test_a_promise_and_a_check_of_one_seed_draw_differently() -> None:
    """Equal seeds give equal plans, other ones other sizes, and a check of the same seed others as well."""
    table = policy_table()
    checked = {each.drawn for each in promises_of(table, QUESTION, seed=1)}
    assert not checked & set(PromisePlan.of(table, QUESTION, seed=1).drawn)
    plans = [PromisePlan.of(table, QUESTION, seed=seed) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_one_choice_promises_nothing_and_measures_nothing() -> None:
    """There is nothing to hold it against."""
    table = policy_table(worst=CPU, rows=(policy_row(1, 512, CPU),))
    plan = PromisePlan.of(table, QUESTION, seed=0)
    assert plan.cases == ()
    assert plan.promising({}) == replace(
        table,
        gain_over_default=NO_GAIN,
        gain_over_worst=NO_GAIN,
        rows=(policy_row(1, 512, CPU, gain_over_worst=NO_GAIN),),
    )
