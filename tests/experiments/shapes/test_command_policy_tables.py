"""What a table says in one sentence."""

from __future__ import annotations

from perfsuite.experiments.shapes.command_policy_tables import finding, gain_text, promise, range_text
from tests.synthetic_shape_policy import CPU, gain, policy_row, policy_table, shape_policy


def test_a_finding_says_who_wins_where() -> None:
    """One row is one winner throughout; a crossover is reported with the measured sizes that it is put between."""
    assert finding(policy_table(rows=(policy_row(1, 512, CPU),))) == "cpu throughout, n 1 to 512"
    assert finding(policy_table()) == "cpu up to n 20, opencl above; interpolated between n 8 and 64"


def test_a_promise_has_its_interval() -> None:
    """Over the best and the worst single choice, which are named; nothing is compared with itself."""
    assert promise(shape_policy().tables[0]) == (
        "promises no gain over the best single choice, tile64-vector8, which is what it says; 1.4x (1.27 to 1.54) over "
        "the worst, tile8-vector8"
    )
    assert promise(policy_table()) == (
        "promises 1.2x (1.09 to 1.32) over the best single choice, cpu; 1.4x (1.27 to 1.54) over the worst, opencl"
    )
    assert "worst" not in promise(policy_table(worst=CPU, rows=(policy_row(1, 512, CPU),)))


def test_certain_gains_and_single_sizes_are_short() -> None:
    """What has no interval is reported without one."""
    assert gain_text(gain(1.0, spread=1.0)) == "1x"
    assert range_text(7, 7) == "7"
