"""What ``perfsuite policy`` prints."""

from __future__ import annotations

from perfsuite.experiments.shapes.command_policy_tables import checks_answer, policy_answer
from perfsuite.experiments.shapes.policy_check import Holding, Promise, PromiseCheck
from perfsuite.experiments.shapes.policy_drawn_sizes import DrawnSizes
from tests.command_streams import Streams, plain_of, printed
from tests.synthetic_shape_policy import CPU, gain, policy_table, shape_policy


def checks() -> tuple[PromiseCheck, ...]:
    """One promise that holds, and one that does not, at a fitted size."""
    row = policy_table().rows[1]
    drawn = DrawnSizes(sizes=(64, 70), n_drawn=2, fitted_sizes=(64,))
    promise = Promise(row=row, over=CPU, promised=gain(1.5), drawn=drawn)
    return (
        PromiseCheck(promise=promise, measured=gain(1.5), holding=Holding.HOLDS),
        PromiseCheck(promise=promise, measured=None, holding=Holding.FAILS, reason="computes [something] else"),
    )


def test_a_policy_is_told_by_rows_findings_and_what_was_left_out(capsys: Streams) -> None:
    """The default is called by its name, and that nothing is known beyond the grid is said."""
    out = printed(policy_answer(shape_policy()), capsys)
    assert "tiling of gemv, f16, k 512; default tile64-vector8, worst tile8-vector8" in out
    assert "cpu up to n 20, opencl above; interpolated between n 8 and 64" in out
    assert "measured at n 1, 8, 64, 512; beyond them nothing is known, and the default holds" in out
    assert "left out: tile16-vector4: gemv/n1-k512/f16: no room" in out
    assert "the default itself" in out


def test_checks_are_told_with_reasons_and_counted(capsys: Streams) -> None:
    """What was fitted there is said to be; brackets of a reason are no markup."""
    words = " ".join(printed(checks_answer([(policy_table(), checks())]), capsys).split())
    assert "2 promises: holds 1, fails 1" in words
    assert "[something]" in words
    assert "n 21 to 512: measured at 64, 70; the choice was made at 64 as well" in words
    assert "1.5x (1.36 to 1.65)" in words


def test_no_choice_is_nothing_to_check(capsys: Streams) -> None:
    """A table of one choice is said to be one."""
    assert "backend of gemv, f16, k 512: nothing to check" in printed(checks_answer([(policy_table(), ())]), capsys)


def test_checks_are_plain() -> None:
    """Promised and measured gains stand beside each other; what was not measured is null."""
    plain = plain_of(checks_answer([(policy_table(), checks())]))
    ((table,), schema) = plain["tables"], plain["schema"]
    assert (schema, table["table"]) == (1, "backend of gemv, f16, k 512")
    first, second = table["checks"]
    assert (first["least"], first["most"], first["choice"], first["over"]) == (21, 512, "opencl", "cpu")
    assert first["measured"] == first["promised"]
    assert (first["sizes"], first["fitted_sizes"], first["holding"], first["reason"]) == ([64, 70], [64], "holds", None)
    assert (second["measured"], second["holding"]) == (None, "fails")
