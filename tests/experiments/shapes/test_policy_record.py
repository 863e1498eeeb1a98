"""Policies by shape: what a table may be, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_record import (
    Choice,
    Gain,
    MeasuredSubject,
    PolicyRow,
    write_policy,
)
from tests.synthetic_shape_policy import CPU, OPENCL, policy_row, policy_table, shape_policy


def test_a_runtime_needs_only_ranges_and_choices(tmp_path: Path) -> None:
    write_policy(shape_policy(), tmp_path / "policy.json")
    plain = json.loads((tmp_path / "policy.json").read_text("utf-8"))["tables"][1]
    for n in (1, 20, 21, 512, 513):
        choice = plain["default"]
        for row in plain["rows"]:
            if row["least"] <= n <= row["most"]:
                choice = row["choice"]
        assert choice["subject"] == shape_policy().tables[1].choose({"n": n, "k": 512}).choice.subject


@pytest.mark.parametrize(
    ("n", "choice", "place"),
    [(1, CPU, 0), (8, CPU, 0), (20, CPU, 0), (21, OPENCL, 1), (512, OPENCL, 1), (513, CPU, None)],
)
def test_a_size_is_answered_by_the_row_that_it_lies_in(n: int, choice: Choice, place: int | None) -> None:
    table = policy_table()
    found = table.choose({"n": n, "k": 512})
    assert found.choice == choice
    assert found.row == (None if place is None else table.rows[place])


def test_beyond_what_was_measured_the_default_is_told() -> None:
    table = policy_table(measured_sizes=(4, 512), rows=(policy_row(4, 512, OPENCL),))
    for sizes in ({"n": 3, "k": 512}, {"n": 100, "k": 1024}):
        found = table.choose(sizes)
        assert (found.choice, found.row) == (CPU, None)
    with pytest.raises(PolicyError, match="a shape without k; expected its size"):
        policy_table().choose({"n": 100})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((), "expected the first to begin at 1 and the last to end at 512"),
        ((policy_row(1, 64, CPU),), "the last to end at 512"),
        ((policy_row(1, 8, CPU), policy_row(64, 512, OPENCL)), r"rows\[1\].least: is 64, expected 9"),
        ((policy_row(1, 64, CPU), policy_row(64, 512, OPENCL)), r"rows\[1\].least: is 64, expected 65"),
        ((policy_row(1, 512, CPU, measured_most=500),), r"rows\[0\]: measured_least and measured_most are none"),
    ],
)
def test_rows_have_neither_gaps_nor_overlaps(rows: tuple[PolicyRow, ...], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy_table(rows=rows)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (partial(policy_table, measured_sizes=sizes), "measured_sizes: expected")
            for sizes in ((), (0, 512), (1, 1, 512), (512, 1))
        ),
        (partial(policy_row, 8, 1, CPU), "a row from 8 to 1"),
        *(
            (partial(Gain, ratio=1.0, lower_ratio=lower, upper_ratio=upper), "a gain of 1 between")
            for lower, upper in ((1.1, 1.2), (0.5, 0.9), (0.0, 2.0), (0.5, float("inf")), (float("nan"), 2.0))
        ),
        (partial(Choice, subject="gpu"), "subject is 'gpu', expected tiled, ggml-cpu, ggml-opencl"),
        (partial(Choice, subject="tiled", tile=8), "tiled: expected a tile and a vector"),
        (partial(Choice, subject="ggml-cpu", tile=8, vector=8), "ggml-cpu: expected no tile and no vector"),
        (partial(MeasuredSubject, subject="npu", device="x", fingerprint={}), "subject is 'npu'"),
        (
            partial(replace, shape_policy(), subjects=shape_policy().subjects[:1]),
            r"tables\[1\]: chooses ggml-cpu, which is none of the subjects",
        ),
    ],
)
def test_what_a_policy_cannot_hold_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        make()


def test_choices_have_short_names() -> None:
    assert [str(each) for each in (CPU, OPENCL)] == ["cpu", "opencl"]
    assert str(Choice(subject="tiled", tile=64, vector=8)) == "tile64-vector8"
