"""What fits a type, and how what does not is reported."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
import pytest

from perfsuite.errors import BaselineError, PerfsuiteError, PolicyError
from perfsuite.records.codec import (
    Amount,
    Count,
    Name,
    Number,
    Positive,
    Size,
    Whole,
    from_plain,
    pack,
    parse_json,
    read_json,
    rebuilt,
    to_plain,
    unpack,
)
from perfsuite.records.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    times: Mapping[str, tuple[Count | None, ...]] = field(default_factory=dict)
    outcome: Outcome | None = None
    pair: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        if self.id == "bad":
            raise PolicyError("no case is called bad")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    cases: tuple[Case, ...]
    is_quick: bool = False


class Loose(TypedDict, total=False):
    a: str


def reported(plain: object, kind: Any = Content, **how: Any) -> str | None:
    """Return what is stated of plain values that do not fit; None where they do."""
    try:
        from_plain(plain, kind, "x.json", BaselineError, "record it anew", **how)
    except BaselineError as error:
        (line,) = str(error).splitlines()
        return line.removeprefix("x.json: ").removesuffix("; record it anew")
    return None


@pytest.mark.parametrize(
    ("kind", "fitting", "unfit"),
    [
        (str, ["", "a"], [None, 1, [], {}]),
        (Name, ["a"], ["", None]),
        (bool, [True, False], [0, 1, None, "true"]),
        (Whole, [0, -1, 2**63 - 1], [True, 1.0, "1", 2**63, -(2**63), None]),
        (Count, [0, 2**63 - 1], [-1, True, 0.5, 2**63, 10**400]),
        (Size, [1], [0, True, 1.0]),
        (Number, [0, -1.5, 1e18], [math.nan, math.inf, -math.inf, 10**400, True, "1", None]),
        (Amount, [0, 1.5], [-1e-9, math.nan, math.inf]),
        (Positive, [1e-9, 1], [0, -1.0, math.nan, math.inf]),
        (Count | None, [None, 1], [-1, "1"]),
        (Literal["a", "b"], ["a", "b"], ["c", None, ["a"]]),
        (Outcome, ["pass"], ["PASS", 1]),
        (tuple[Count, ...], [[], [1, 2]], [None, {}, "12", [1, -1]]),
        (Mapping[str, str], [{}, {"a": "b"}], [None, [], {"a": 1}]),
        (Case, [{"id": "a"}, {"id": "a", "other": 1}], [None, [], {}, {"id": 1}]),
        (Loose, [{}, {"a": "b"}, {"other": 1}], [None, {"a": 1}]),
    ],
)
def test_what_fits_and_what_does_not(kind: Any, fitting: list[object], unfit: list[object]) -> None:
    """Each type takes its own alone: neither a truth value nor what is not finite is a number."""
    assert [value for value in fitting if reported(value, kind) is not None] == []
    assert [value for value in unfit if reported(value, kind) is None] == []


@pytest.mark.parametrize(
    ("plain", "line"),
    [
        ([], "is a list, expected an object"),
        ({}, "cases is missing"),
        ({"cases": {}}, "cases is an object, expected a list"),
        ({"cases": [{}]}, "cases[0]: id is missing"),
        ({"cases": [{"id": "a", "outcome": "good"}]}, "cases['a'].outcome is 'good', expected one of invalid, "),
        ({"cases": [{"id": "a", "pair": ["x"]}]}, "cases['a'].pair has 1 values, expected 2"),
        ({"cases": [{"id": "a", "pair": ["x", None]}]}, "cases['a'].pair[1] is null, expected a whole number"),
        ({"cases": [{"id": "bad"}]}, "cases['bad']: no case is called bad"),
        ({"cases": [], "is_quick": 1}, "is_quick is 1, expected true or false"),
        (
            {"cases": [{"id": "a"}, {"id": "b", "times": {"x": [1, "y"]}}]},
            "cases['b'].times['x'][1] is 'y', expected a whole number from 0 to below 2**63, or null",
        ),
        ({"cases": [{"id": ["a"]}]}, "cases[a list].id is a list, expected text"),
    ],
)
def test_the_way_to_what_is_wrong_is_reported(plain: object, line: str) -> None:
    """Fields, places and names make up the way; things with a key go by it."""
    assert (reported(plain) or "").startswith(line)


def test_what_nobody_reads_is_refused_where_that_is_asked() -> None:
    """The message names what is accepted, and shows some characters of a long value."""
    plain = {"schema": 1, "cases": [{"id": "a", "later": 1}]}
    assert reported(plain, schema=1) is None
    assert reported(plain, schema=1, is_closed=True) == (
        "cases['a']: field 'later' is unknown; accepted are id, times, outcome, pair"
    )
    assert len(reported("x" * 1000, Count) or "") < 120


@pytest.mark.parametrize("schema", [True, 1.0, 2, None, "1"])
def test_another_schema_is_refused_before_all_else(schema: object) -> None:
    """Its fields have another meaning."""
    assert (reported({"schema": schema, "cases": 7}, schema=1) or "").endswith(", expected 1")


def test_what_was_made_plain_is_built_again() -> None:
    case = Case(id="a", times={"x": (1, None)}, outcome=Outcome.PASS, pair=("y", 2))
    written = json.dumps(to_plain(case))
    assert json.loads(written) == {"id": "a", "times": {"x": [1, None]}, "outcome": "pass", "pair": ["y", 2]}
    assert from_plain(parse_json(written), Case, "", PerfsuiteError, "") == case
    content = Content(cases=(Case(id="a", pair=("x", 1)), Case(id="b")))
    plain = unpack(pack({**to_plain(content, rows=["cases"]), "time_ns": np.float64(1.5)}))
    assert plain == {"cases": [["a", {}, None, ["x", 1]], ["b", {}, None, None]], "is_quick": False, "time_ns": 1.5}
    assert rebuilt(plain, Content, cases=Case) == content
    with pytest.raises(NotImplementedError, match="object is nothing that a file holds"):
        pack({"a": object()})


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "is not JSON ("),
        (b"\xff", "is not JSON ("),
        (b"[" * 100_000, "is not JSON ("),
        (b"1" * 5000, "is not JSON ("),
        (b'{"cases": NaN}', "is not JSON (NaN is not a number of JSON)"),
        (b'{"cases": [], "cases": []}', "is not JSON (of an object['cases'] is there twice)"),
        (b'{"cases": [1e999]}', "cases[0] is inf, expected an object"),
    ],
)
def test_what_is_not_json_is_one_line(content: bytes, line: str, tmp_path: Path) -> None:
    """Also what Python's parser takes for JSON: a name twice, of which one would be lost, and NaN."""
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(BaselineError) as raised:
        read_json(path, Content, BaselineError, "record it anew")
    assert str(raised.value).startswith(f"{path}: {line}")
    assert str(raised.value).endswith("; record it anew")


def test_a_file_that_is_not_there_may_have_something_in_its_place(tmp_path: Path) -> None:
    """Of whatever else cannot be read the reason is shown; NaN is read only where that is said."""
    assert read_json(tmp_path / "x.json", Content, PerfsuiteError, "", absent=None) is None
    with pytest.raises(PerfsuiteError, match=r"cannot be read \(No such file or directory\); look for it"):
        read_json(tmp_path / "x.json", Content, PerfsuiteError, "look for it")
    with pytest.raises(PerfsuiteError, match=r"cannot be read \(Is a directory\)"):
        read_json(tmp_path, Content, PerfsuiteError, "", absent=None)
    assert math.isnan(parse_json("NaN", allows_nan=True))
