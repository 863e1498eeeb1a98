"""What fits a field, and how what does not is told."""

from __future__ import annotations

import math

import pytest

from perfsuite.records.field_checks import (
    Check,
    amount,
    by_name,
    count,
    flag,
    list_of,
    number,
    object_of,
    one_of,
    or_none,
    ratio,
    text,
    whole_number,
)


@pytest.mark.parametrize(
    ("check", "fitting", "unfit"),
    [
        (text, ["", "a"], [None, 1, [], {}]),
        (flag, [True, False], [0, 1, None, "true"]),
        (whole_number, [0, -1, 2**63 - 1], [True, 1.0, "1", 2**63, -(2**63), None]),
        (count, [0, 2**63 - 1], [-1, True, 0.5, 2**63]),
        (number, [0, -1.5, 1e18], [math.nan, math.inf, -math.inf, 10**400, True, "1", None]),
        (amount, [0, 1.5], [-1e-9, math.nan, math.inf]),
        (ratio, [0, 0.0, 1e-12, 1.2], [5e-324, -1.0, math.nan, math.inf, False]),
        (or_none(count), [None, 1], [-1, "1"]),
        (one_of(["a", "b"]), ["a", "b"], ["c", None, ["a"]]),
        (list_of(count), [[], [1, 2]], [None, {}, (1,), "12", [1, -1]]),
        (by_name(text), [{}, {"a": "b"}], [None, [], {"a": 1}]),
        (object_of({"a": text}), [{}, {"a": "b"}, {"other": 1}], [None, [], {"a": 1}]),
    ],
)
def test_what_fits_and_what_does_not(check: Check, fitting: list[object], unfit: list[object]) -> None:
    """Each check takes its own alone: neither a truth value nor what is not finite is a number."""
    assert [value for value in fitting if check(value) is not None] == []
    assert [value for value in unfit if check(value) is None] == []


def test_the_way_to_what_is_wrong_is_told() -> None:
    """Fields, places and names make up the way; things with a key go by it."""
    check = object_of({"cases": list_of(object_of({"id": text, "times": by_name(list_of(or_none(count)))}), key="id")})
    wrong = {"cases": [{"id": "a"}, {"id": "b", "times": {"x": [1, "y"]}}]}
    told = check(wrong)
    assert told == ".cases['b'].times['x'][1] is 'y', expected a whole number from 0 to below 2**63, or null"


def test_what_has_a_key_has_its_own() -> None:
    """A second of the same key is told, and so is a key that is none."""
    check = list_of(object_of({"id": text}), key="id")
    assert check([{"id": "a"}, {"id": "b"}, {"id": "a"}]) == "['a'] is there twice"
    assert check([{"id": ["a"]}, {"id": ["a"]}]) == "[a list].id is a list, expected text"
    assert check([{}, {}]) is None


def test_a_long_value_is_told_shortly() -> None:
    """What a line names has some characters of it alone."""
    assert len(count("x" * 1000) or "") < 120
