"""What a table says in one sentence."""

from __future__ import annotations

from perfsuite.experiments.shapes.command_policy_tables import finding, gain_text, promise, range_text
from tests.synthetic_shape_policy import CPU, gain, policy_row, policy_table, shape_policy


def test_no_change_is_said_plainly() -> None:
    """One row is one winner throughout."""
    assert finding(policy_table(rows=(policy_row(1, 512, CPU),))) == "cpu throughout, n 1 to 512"


def test_a_crossover_is_told_with_what_it_lies_between() -> None:
    """Where it is put between two measured sizes, that is told."""
    assert finding(policy_table()) == "cpu up to n 20, opencl above; interpolated between n 8 and 64"


def test_a_table_that_says_the_default_promises_nothing() -> None:
    """The best single choice gains nothing over itself; the worst is named."""
    assert promise(shape_policy().tables[0]) == (
        "promises no gain over the best single choice, tile64-vector8, which is what it says; 1.4x (1.27 to 1.54) over "
        "the worst, tile8-vector8"
    )


def test_a_promise_has_its_interval() -> None:
    """Gains are told over the best and over the worst single choice, which are named."""
    assert promise(policy_table()) == (
        "promises 1.2x (1.09 to 1.32) over the best single choice, cpu; 1.4x (1.27 to 1.54) over the worst, opencl"
    )


def test_one_choice_is_not_held_against_itself() -> None:
    """Where the best is the worst there is no second gain."""
    assert "worst" not in promise(policy_table(worst=CPU, rows=(policy_row(1, 512, CPU),)))


def test_certain_gains_and_single_sizes_are_short() -> None:
    """What has no interval is told without one."""
    assert gain_text(gain(1.0, spread=1.0)) == "1x"
    assert range_text(7, 7) == "7"
