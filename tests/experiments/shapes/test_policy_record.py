"""Policies by shape: what a table may be, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_record import (
    Choice,
    Gain,
    MeasuredSubject,
    PolicyRow,
    policy_plain,
    read_policy,
    write_policy,
)
from tests.synthetic_shape_policy import CPU, OPENCL, policy_row, policy_table, shape_policy


def test_a_policy_comes_back_from_its_file(tmp_path: Path) -> None:
    """What is read is what was written."""
    write_policy(shape_policy(), tmp_path / "policy.json")
    assert read_policy(tmp_path / "policy.json") == shape_policy()


def test_a_runtime_needs_only_ranges_and_choices(tmp_path: Path) -> None:
    """The lookup that the module documents, on plain JSON, says what `choose` says, within and beyond the rows."""
    write_policy(shape_policy(), tmp_path / "policy.json")
    plain = json.loads((tmp_path / "policy.json").read_text("utf-8"))["tables"][1]
    for n in (1, 20, 21, 512, 513):
        choice = plain["default"]
        for row in plain["rows"]:
            if row["least"] <= n <= row["most"]:
                choice = row["choice"]
        assert choice["subject"] == shape_policy().tables[1].choose({"n": n, "k": 512}).choice.subject


def _set(*path: str | int, to: Any = ...) -> Callable[[Any], None]:
    def damage(plain: Any) -> None:
        for key in path[:-1]:
            plain = plain[key]
        plain[path[-1]] = to
        if to is ...:
            del plain[path[-1]]

    return damage


_drop = _set


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_set("schema", to=2), "p.json: schema is 2, expected 1"),
        (_drop("schema"), "p.json: schema is missing"),
        (_set("n_threads", to=True), "p.json: n_threads is True, expected a whole number of 1 to 2147483647"),
        (_set("tables", to={}), "p.json: tables is an object, expected a list"),
        (_set("tables", 0, to=7), "p.json: tables[0] is 7, expected an object"),
        (
            _set("tables", 1, "decides", to="speed"),
            "p.json: tables[1].decides is 'speed', expected one of tiling, backend",
        ),
        (_drop("tables", 1, "worst"), "p.json: tables[1]: worst is missing"),
        (_set("tables", 1, "fixed", to={"k": 1.5}), "p.json: tables[1].fixed['k'] is 1.5, expected a whole number"),
        (_set("tables", 1, "measured_sizes", to=[1, "8"]), "p.json: tables[1].measured_sizes[1] is '8', expected"),
        (_set("tables", 1, "rows", 1, "least", to="x"), "p.json: tables[1].rows[1].least is 'x', expected a whole"),
        (_set("tables", 1, "rows", 1, "least", to=2**40), "p.json: tables[1].rows[1].least is 1099511627776"),
        (_set("tables", 1, "rows", 1, "least", to=30), "p.json: tables[1]: rows[1].least: is 30, expected 21"),
        (_set("tables", 1, "rows", 0, "most", to=4), "p.json: tables[1].rows[0]: a row from 1 to 4, measured"),
        (
            _set("tables", 1, "rows", 0, "gain_over_worst", "ratio", to=0),
            "p.json: tables[1].rows[0].gain_over_worst.ratio is 0, expected a finite number above 0",
        ),
        (
            _set("tables", 1, "rows", 0, "gain_over_worst", "ratio", to=9.0),
            "p.json: tables[1].rows[0].gain_over_worst: a gain of 9 between",
        ),
        (_drop("tables", 0, "default", "tile"), "p.json: tables[0].default: tiled: expected a tile and a vector"),
        (_set("tables", 1, "default", "subject", to="npu"), "p.json: tables[1].default: subject is 'npu'"),
        (_set("subjects", 0, "fingerprint", to={"a": 1}), "p.json: subjects[0].fingerprint['a'] is 1, expected text"),
        (_set("subjects", to=[]), "p.json: tables[0]: chooses tiled, which is none of the subjects"),
    ],
)
def test_a_damaged_file_is_refused_by_the_place_of_the_damage(
    damage: Callable[[Any], None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file, the field, what it is and what is expected, and names the file once."""
    monkeypatch.chdir(tmp_path)
    plain = json.loads(json.dumps(policy_plain(shape_policy())))
    damage(plain)
    Path("p.json").write_text(json.dumps(plain))
    with pytest.raises(PolicyError) as refused:
        read_policy(Path("p.json"))
    assert str(refused.value).startswith(message)
    assert str(refused.value).count("p.json") == 1
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, r"is not JSON \(.*") for text in ("", "{", "[" * 100_000, "\x00")),
        ("[]", "is a list, expected an object; "),
        (None, r"cannot be read \(No such file.*"),
    ],
)
def test_what_is_no_policy_is_refused(tmp_path: Path, text: str | None, why: str) -> None:
    """A file of something else, or none, is one line that says what is expected."""
    path = tmp_path / "policy.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PolicyError, match=rf"policy\.json: {why}expected a file of 'perfsuite"):
        read_policy(path)


@pytest.mark.parametrize(
    ("n", "choice", "place"),
    [(1, CPU, 0), (8, CPU, 0), (20, CPU, 0), (21, OPENCL, 1), (512, OPENCL, 1), (513, CPU, None)],
)
def test_a_size_is_answered_by_the_row_that_it_lies_in(n: int, choice: Choice, place: int | None) -> None:
    """Both ends belong to a row."""
    table = policy_table()
    found = table.choose({"n": n, "k": 512})
    assert found.choice == choice
    assert found.row == (None if place is None else table.rows[place])


def test_beyond_what_was_measured_the_default_is_told() -> None:
    """Below the grid, and of another fixed size, without a row; a shape without the dimension is refused."""
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
    """Every size between the first and the last measured one is in exactly one row."""
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
    """Sizes that do not ascend, ranges and gains that are none, and who does not compute or was not measured."""
    with pytest.raises(PolicyError, match=message):
        make()


def test_choices_have_short_names() -> None:
    """Backends are called as the traces' crossover calls them, tilings as in case ids."""
    assert [str(each) for each in (CPU, OPENCL)] == ["cpu", "opencl"]
    assert str(Choice(subject="tiled", tile=64, vector=8)) == "tile64-vector8"
